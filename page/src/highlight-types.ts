/** A coloured part of a line: where it starts, where it ends, and its classes. */
export type Token = [start: number, end: number, kind: string];
