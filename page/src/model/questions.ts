// The open questions of all sessions that this page takes part in: permissions and forms.
//
// A question is answered once, here or in another client. When its connection is lost it stays in sight, without its
// buttons, until Crow asks it again or it turns out that somebody else has answered.

import { signal } from "@preact/signals";
import type { FormRequest, PermissionAnswer, PermissionRequest, SessionId } from "../acp";
import { crow } from "../connection";
import type { Asked } from "../rpc";

interface Base {
  key: string;
  sessionId: SessionId;
  /** Whether its connection is gone: an answer would not arrive. */
  isLost: boolean;
}
export interface Permission extends Base {
  is: "permission";
  request: PermissionRequest;
  answer(answer: PermissionAnswer): void;
}
export interface FormQuestion extends Base {
  is: "form";
  request: FormRequest;
  answer(answer: { action: "accept" | "decline" | "cancel"; content?: Record<string, unknown> }): void;
}
export type Question = Permission | FormQuestion;

export const questions = signal<Question[]>([]);
export const questionsOf = (sessionId: SessionId) => questions.value.filter((one) => one.sessionId === sessionId);

let lastForm = 0;

export function listenForQuestions(): void {
  crow.onRequest("session/request_permission", (asked) => {
    const request = asked.params as PermissionRequest;
    return put(asked, request.sessionId, (base) => ({
      ...base,
      is: "permission",
      request,
      key: `${request.sessionId} ${request.toolCall.toolCallId}`,
    }));
  });
  crow.onRequest("elicitation/create", (asked) => {
    const request = asked.params as FormRequest;
    return put(asked, request.sessionId, (base) => ({ ...base, is: "form", request, key: `form ${++lastForm}` }));
  });
}

/** A session was loaded again: what was not asked again by then is answered. */
export function dropLost(sessionId: SessionId): void {
  questions.value = questions.value.filter((one) => !(one.isLost && one.sessionId === sessionId));
}

function put(asked: Asked, sessionId: SessionId, make: (base: Base & { answer(answer: unknown): void }) => Question) {
  return new Promise((resolve) => {
    const question = make({
      key: "",
      sessionId,
      isLost: false,
      answer(answer) {
        remove(question);
        resolve(answer);
      },
    });
    questions.value = [...questions.value.filter((one) => one.key !== question.key && !isSameForm(one, question)), question];
    asked.withdrawn.addEventListener("abort", () => {
      if (crow.isUsable) remove(question);
      else questions.value = questions.value.map((one) => (one === question ? { ...one, isLost: true } : one));
      resolve({ outcome: { outcome: "cancelled" } }); // nobody waits for it
    });
  });
}

/** A form has no id of its own: one that was lost and says the same is the one that is asked again. */
function isSameForm(one: Question, other: Question): boolean {
  return (
    one.is === "form" && other.is === "form" && one.isLost && one.sessionId === other.sessionId &&
    one.request.message === other.request.message
  );
}

function remove(question: Question): void {
  questions.value = questions.value.filter((one) => one.key !== question.key);
}
