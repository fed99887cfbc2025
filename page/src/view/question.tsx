// A question to the person: what is to be done, in full, and the answers, as large buttons that also have keys.

import type { JSX } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import type { PermissionOption } from "../acp";
import { crow } from "../connection";
import type { Permission, Question } from "../model/questions";
import { rows } from "../model/sessions";
import { DiffView } from "../widgets";
import { lastPart } from "../paths";
import { diffsIn } from "./call";
import { Content } from "./content";
import { FormView } from "./form";
import { Icon } from "./icons";

/** A question takes no answer in its first moment: a key or a tap that was meant for something else must not be one. */
const ARMED_MS = 350;
export const KEYS: Record<PermissionOption["kind"], string> = {
  allow_once: "a",
  allow_always: "A",
  reject_once: "r",
  reject_always: "R",
};

export function QuestionCard({ question, isElsewhere }: { question: Question; isElsewhere?: boolean }): JSX.Element {
  const isArmed = useArmed(question);
  const row = rows.value.find((one) => one.sessionId === question.sessionId);
  return (
    <section class="question" aria-label="Question" data-question={question.key}>
      {isElsewhere && row && (
        <p class="question-where">
          <bdi>{row.title || "Untitled"}</bdi> · <bdi>{lastPart(row.cwd)}</bdi>
        </p>
      )}
      {question.is === "permission" ? (
        <PermissionView question={question} isArmed={isArmed} />
      ) : (
        <FormView question={question} isArmed={isArmed} />
      )}
      {question.isLost && <p class="quiet" role="status">Asked again once the connection is back.</p>}
    </section>
  );
}

function useArmed(question: Question): boolean {
  const [armedFor, setArmedFor] = useState("");
  useEffect(() => {
    const timer = setTimeout(() => setArmedFor(question.key), ARMED_MS);
    return () => clearTimeout(timer);
  }, [question.key]);
  return armedFor === question.key && !question.isLost && crow.isUsable;
}

function PermissionView({ question, isArmed }: { question: Permission; isArmed: boolean }): JSX.Element {
  const { toolCall, options, _meta: meta } = question.request;
  const content = toolCall.content ?? [];
  const cwd = rows.value.find((row) => row.sessionId === question.sessionId)?.cwd ?? "";
  const diffs = useMemo(() => diffsIn(content, cwd), [question.request, cwd]);
  const count = diffs.reduce((sum, item) => sum + (item._meta?.crow?.diff?.changes.length ?? 0), 0);
  const canChoose = meta?.crow?.partial === true && count > 1;
  const [accepted, setAccepted] = useState<ReadonlySet<number>>(() => new Set(Array.from({ length: count }, (_, index) => index)));
  const [mayType, setMayType] = useState(false);
  // A command is in the content, in full; its title is the same once more.
  const isCommand = toolCall.kind === "execute" && content.some((item) => item.type === "content");
  const isPart = canChoose && accepted.size < count;
  const answer = (option: PermissionOption) => {
    const facts: { accepted?: number[]; input?: "open" } = {};
    if (isPart && option.kind === "allow_once") facts.accepted = [...accepted].sort((one, other) => one - other);
    if (mayType && option.kind.startsWith("allow")) facts.input = "open";
    question.answer({
      outcome: { outcome: "selected", optionId: option.optionId },
      ...(Object.keys(facts).length ? { _meta: { crow: facts } } : {}),
    });
  };
  return (
    <>
      <h2 class="question-title">
        <Icon name="ask" />
        <bdi>{isCommand ? "May this command run?" : (toolCall.title ?? "May this be done?")}</bdi>
      </h2>
      <div class="question-body" tabIndex={0} role="group" aria-label="What is asked for">
        {content.map((item, index) => item.type === "content" && <Content key={index} block={item.content} />)}
        {diffs.length > 0 && (
          <DiffView items={diffs} {...(canChoose ? { accepted, onAccepted: setAccepted } : {})} />
        )}
      </div>
      {toolCall.kind === "execute" && (
        <label class="check">
          <input type="checkbox" checked={mayType} onChange={(event) => setMayType(event.currentTarget.checked)} />
          Let me type into it
        </label>
      )}
      <div class="answers">
        {options.map((option) => (
          <Answer
            key={option.optionId}
            option={option}
            label={isPart && option.kind === "allow_once" ? `Allow ${accepted.size} of ${count} changes` : option.name}
            isOff={!isArmed || (isPart && (option.kind === "allow_always" || (option.kind === "allow_once" && accepted.size === 0)))}
            isFirstOfKind={options.find((one) => one.kind === option.kind) === option}
            onAnswer={() => answer(option)}
          />
        ))}
      </div>
    </>
  );
}

interface AnswerProps {
  option: PermissionOption;
  label: string;
  isOff: boolean;
  isFirstOfKind: boolean;
  onAnswer: () => void;
}

function Answer({ option, label, isOff, isFirstOfKind, onAnswer }: AnswerProps): JSX.Element {
  const key = isFirstOfKind ? KEYS[option.kind] : undefined;
  return (
    <button class={`answer is-${option.kind}`} data-key={key} disabled={isOff} onClick={onAnswer}>
      <span class="answer-name">{label}</span> {key && <kbd aria-hidden="true">{key}</kbd>}
    </button>
  );
}
