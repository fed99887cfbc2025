// JSON-RPC 2.0 over one WebSocket: requests with typed answers, notifications, and requests that the agent makes.
// It knows nothing of reconnecting: a connection that is lost fails what waits for it, and `connection.ts` makes another.

import type { Methods } from "./acp";

export const UNKNOWN_METHOD = -32601;
export const AUTH_REQUIRED = -32000;
/** What cannot be done now, such as a second turn at once; what is no valid request; a session that is not open here. */
const NOT_TAKEN = [-32600, -32602, -32002];
/** A request of ours that nobody can answer any more, because the connection is gone. */
export const LOST = -1;

export class RpcError extends Error {
  constructor(
    readonly code: number,
    message: string,
    readonly data?: unknown,
  ) {
    super(message);
  }
}

/** Whether Crow refused a request before it did anything of it. */
export function isNotTaken(error: unknown): boolean {
  return error instanceof RpcError && NOT_TAKEN.includes(error.code);
}

/** What is said of something that was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** A request of the agent. `withdrawn` is told when it wants no answer any more. */
export interface Asked {
  method: string;
  params: unknown;
  withdrawn: AbortSignal;
}

export interface Handlers {
  /** Answers a request of the agent; whatever it throws is answered as an error. */
  request(asked: Asked): Promise<unknown>;
  notification(method: string, params: unknown): void;
}

interface Message {
  id?: number | string;
  method?: string;
  params?: unknown;
  result?: unknown;
  error?: { code: number; message: string; data?: unknown };
}

interface Waiting {
  resolve(result: unknown): void;
  reject(error: RpcError): void;
}

export class Rpc {
  private lastId = 0;
  private readonly waiting = new Map<number | string, Waiting>();
  private readonly asked = new Map<number | string, AbortController>();

  constructor(
    private readonly send: (text: string) => void,
    private readonly handlers: Handlers,
  ) {}

  call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    const id = ++this.lastId;
    return new Promise((resolve, reject) => {
      this.waiting.set(id, { resolve: resolve as (result: unknown) => void, reject });
      this.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
    });
  }

  notify(method: string, params: object): void {
    this.send(JSON.stringify({ jsonrpc: "2.0", method, params }));
  }

  /** One text frame: one message. What is no message is dropped, as nothing can be answered to it. */
  receive(text: string): void {
    let message: Message;
    try {
      message = JSON.parse(text) as Message;
    } catch {
      return;
    }
    if (message.method === "$/cancel_request") {
      const { requestId } = message.params as { requestId: number | string };
      this.asked.get(requestId)?.abort();
    } else if (message.method !== undefined && message.id !== undefined) {
      void this.answer(message.id, message.method, message.params);
    } else if (message.method !== undefined) {
      this.handlers.notification(message.method, message.params);
    } else if (message.id !== undefined) {
      this.settle(message.id, message);
    }
  }

  /** The connection is gone: nothing that waits will be answered, and nobody waits for our answers. */
  end(): void {
    for (const { reject } of this.waiting.values()) reject(new RpcError(LOST, "The connection to Crow was lost."));
    this.waiting.clear();
    for (const controller of this.asked.values()) controller.abort();
    this.asked.clear();
  }

  private settle(id: number | string, message: Message): void {
    const waiting = this.waiting.get(id);
    this.waiting.delete(id);
    if (message.error) waiting?.reject(new RpcError(message.error.code, message.error.message, message.error.data));
    else waiting?.resolve(message.result);
  }

  private async answer(id: number | string, method: string, params: unknown): Promise<void> {
    const controller = new AbortController();
    this.asked.set(id, controller);
    let answer: object;
    try {
      answer = { result: await this.handlers.request({ method, params, withdrawn: controller.signal }) };
    } catch (error) {
      const { code, message } = error instanceof RpcError ? error : new RpcError(-32603, String(error));
      answer = { error: { code, message } };
    }
    // A question that was withdrawn was answered elsewhere, or its connection is gone.
    if (this.asked.delete(id) && !controller.signal.aborted) this.send(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }
}
