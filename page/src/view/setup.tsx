// What is shown while no model is set up: the ways that Crow offers, the scripted model among them.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { crow } from "../connection";
import { authenticate } from "../model/setup";
import { messageOf } from "../rpc";
import type { SetupProps } from "../widgets";

export function Setup({ reason, onDone, onLater }: SetupProps): JSX.Element {
  const [problem, setProblem] = useState("");
  const methods = crow.agent.value?.authMethods ?? [];
  const take = async (methodId: string) => {
    try {
      await authenticate(methodId);
      setProblem("");
      onDone();
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <section class="setup" aria-label="Set up a model">
      <h2>{reason ? "The model cannot be used" : "No model is set up yet"}</h2>
      {reason && (
        <p class="bad" role="alert">
          {reason}
        </p>
      )}
      <p>
        Run <code>crow login</code> in a terminal to use yours, or try Crow with a scripted model: nothing leaves this machine.
      </p>
      {problem && (
        <p class="bad" role="alert">
          {problem}
        </p>
      )}
      <div class="answers">
        {methods
          .filter((method) => method.type !== "terminal")
          .map((method) => (
            <button key={method.id} class="answer" title={method.description} onClick={() => void take(method.id)}>
              {method.name}
            </button>
          ))}
        {onLater && (
          <button class="link" onClick={onLater}>
            Not now
          </button>
        )}
      </div>
    </section>
  );
}
