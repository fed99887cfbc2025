// What is shown while no model is set up: the ways that Crow offers, the scripted model among them.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { crow } from "../connection";
import { begin, needsSetup } from "../model/sessions";
import { authenticate } from "../model/setup";
import { openSession } from "../route";
import { messageOf } from "../rpc";
import { dialog } from "./dialogs";

/** `onDone` is called once a way was taken and is good. */
export function Setup({ onDone }: { onDone: () => void }): JSX.Element {
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
      <h2>No model is set up yet</h2>
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
      </div>
    </section>
  );
}

/** The same for a session that could not be begun. */
export function SetupForNew({ folder }: { folder: string }): JSX.Element {
  const again = async () => {
    needsSetup.value = null;
    const session = await begin(folder);
    dialog.value = null;
    if (session) openSession(session.id);
  };
  return <Setup onDone={() => void again()} />;
}
