// A question to the person: what is to be done, in full, and the answers, as large buttons that also have keys.

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { PermissionOption } from "../acp";
import { KEY_OF_ANSWER } from "../answer_keys";
import { crow } from "../connection";
import { isNarrow } from "../media";
import type { Permission, Question } from "../model/questions";
import { rows } from "../model/sessions";
import { DiffView, FormView } from "../widgets";
import { plainly } from "../hidden";
import { lastPart, relative } from "../paths";
import { plainTitle } from "../plain_title";
import { type Arming, useArming } from "./arming";
import { diffsIn } from "./call";
import { Content, Words } from "./content";
import { Icon } from "./icons";

interface CardProps {
  question: Question;
  isElsewhere?: boolean;
  /** How many come after it. */
  more?: number;
}

export function QuestionCard({ question, isElsewhere, more }: CardProps): JSX.Element {
  const card = useRef<HTMLElement>(null);
  const arming = useArming(card, !question.isLost && crow.isUsable);
  const row = rows.value.find((one) => one.sessionId === question.sessionId);
  return (
    <section ref={card} class="question" aria-label="Question" data-question={question.key} data-home tabIndex={-1}>
      {isElsewhere && row && (
        <p class="question-where">
          <bdi>{row.title || "Untitled"}</bdi> · <bdi>{lastPart(row.cwd)}</bdi>
        </p>
      )}
      {!!more && <p class="question-where">{more} more to answer after this.</p>}
      {question.is === "permission" ? (
        <PermissionView question={question} arming={arming} />
      ) : (
        <FormView question={question} arming={arming} />
      )}
      {question.isLost && <p class="quiet" role="status">Asked again once the connection is back.</p>}
    </section>
  );
}

function PermissionView({ question, arming }: { question: Permission; arming: Arming }): JSX.Element {
  const { toolCall, options, _meta: meta } = question.request;
  const content = toolCall.content ?? [];
  const cwd = rows.value.find((row) => row.sessionId === question.sessionId)?.cwd ?? "";
  const diffs = useMemo(() => diffsIn(content, cwd, toolCall.kind), [question.request, cwd]);
  const count = diffs.reduce((sum, item) => sum + (item._meta?.crow?.diff?.changes.length ?? 0), 0);
  const canChoose = meta?.crow?.partial === true && count > 1;
  const [accepted, setAccepted] = useState<ReadonlySet<number>>(() => new Set(Array.from({ length: count }, (_, index) => index)));
  const [mayType, setMayType] = useState(false);
  // A command is in the content, in full; its title is the same once more.
  const isCommand = toolCall.kind === "execute" && content.some((item) => item.type === "content");
  // A title that is too long ends with three points, and what they stand for may be what matters: the name of the file.
  const cutPath = toolCall.title?.endsWith("…") ? toolCall.locations?.[0]?.path : undefined;
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
        <bdi>{isCommand ? "May this command run?" : plainTitle(toolCall.title ?? "May this be done?")}</bdi>
      </h2>
      <div class="question-body" tabIndex={0} role="group" aria-label="What is asked for">
        {cutPath && <pre class="plain">{plainly(relative(cutPath, cwd))}</pre>}
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
        {inOrder(options).map((option) => (
          <Answer
            key={option.optionId}
            option={option}
            label={isPart && option.kind === "allow_once" ? `Allow ${accepted.size} of ${count} changes` : option.name}
            isOff={isPart && (option.kind === "allow_always" || (option.kind === "allow_once" && accepted.size === 0))}
            arming={arming}
            isFirstOfKind={options.find((one) => one.kind === option.kind) === option}
            onAnswer={() => answer(option)}
          />
        ))}
      </div>
    </>
  );
}

/** On a phone there is room for two at once: yes and no come before what holds from now on. */
function inOrder(options: PermissionOption[]): PermissionOption[] {
  const isAlways = ({ kind }: PermissionOption) => Number(kind.endsWith("always"));
  return isNarrow.matches ? [...options].sort((one, other) => isAlways(one) - isAlways(other)) : options;
}

interface AnswerProps {
  option: PermissionOption;
  label: string;
  isOff: boolean;
  arming: Arming;
  isFirstOfKind: boolean;
  onAnswer: () => void;
}

function Answer({ option, label, isOff, arming, isFirstOfKind, onAnswer }: AnswerProps): JSX.Element {
  const key = isFirstOfKind ? KEY_OF_ANSWER[option.kind] : undefined;
  return (
    <button class={`answer is-${option.kind}`} data-key={key} {...arming.button(isOff, onAnswer)}>
      <span class="answer-name">
        <Words text={label} />
      </span> {key && <kbd aria-hidden="true">{key}</kbd>}
    </button>
  );
}
