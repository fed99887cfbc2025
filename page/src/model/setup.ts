// Which way to a model the person chose. A log-in belongs to a connection: on a new one it is done again, if it is needed.

import type { Methods } from "../acp";
import { crow } from "../connection";
import { AUTH_REQUIRED, RpcError } from "../rpc";
import { recall, remember } from "../storage";

/** Log in by a method that Crow offers. */
export async function authenticate(methodId: string): Promise<void> {
  await crow.call("authenticate", { methodId });
  remember("method", methodId);
}

/** A request that needs a model: where none is set up, the way that was chosen before is taken again. */
export async function callWithModel<M extends keyof Methods>(
  method: M,
  params: Methods[M]["params"],
): Promise<Methods[M]["result"]> {
  try {
    return await crow.call(method, params);
  } catch (error) {
    const chosen = recall("method", "");
    if (!chosen || !(error instanceof RpcError) || error.code !== AUTH_REQUIRED) throw error;
    await crow.call("authenticate", { methodId: chosen });
    return crow.call(method, params);
  }
}
