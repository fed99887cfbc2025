// A call's title as plain text. Where Markdown would swallow a part of it, it comes as code, between ticks; here it is
// no Markdown.

const CODE = /^(`+)(?!`)( ?)(.+?)\2(?<!`)\1(?!`)/;

export function plainTitle(title: string): string {
  return title.replace(CODE, "$3");
}
