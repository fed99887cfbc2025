// A form that the agent, or a server that it uses, asks the person to fill in.

import type { JSX } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import type { FormField } from "../acp";
import { isCoarse, isComposing } from "../media";
import type { FormViewProps } from "../widgets";
import { Words } from "./content";
import { Icon } from "./icons";

type Values = Record<string, unknown>;
/** What was filled in of a form that is not answered yet: somebody may look at another session meanwhile. */
const filledIn = new WeakMap<object, Values>();
/** The browser's own input for a format, which it also checks. */
const INPUT_TYPES: Record<string, "email" | "url" | "date" | "datetime-local"> = { email: "email", uri: "url", date: "date", "date-time": "datetime-local" };

export function FormView({ question, arming }: FormViewProps): JSX.Element {
  const { message, requestedSchema: schema } = question.request;
  const fields = Object.entries(schema?.properties ?? {});
  const required = new Set(schema?.required ?? []);
  const [values, setValues] = useState<Values>(
    () => filledIn.get(question.request) ?? Object.fromEntries(fields.map(([name, field]) => [name, initial(field)])),
  );
  const isWhole = [...required].every((name) => isGiven(values[name]) && (values[name] as { length?: number }).length !== 0);
  const fill = (name: string, value: unknown) => {
    const next = { ...values, [name]: value };
    filledIn.set(question.request, next);
    setValues(next);
  };
  const only = fields.length === 1 ? fields[0] : undefined;
  const quick = only && choices(only[1]).length > 0 && only[1].type !== "array" ? only : undefined;
  const accept = (content: Values) => {
    const given = Object.entries(content)
      .filter(([, value]) => isGiven(value))
      .map(([name, value]) => [name, schema?.properties[name]?.format === "date-time" ? new Date(value as string).toISOString() : value]);
    question.answer({ action: "accept", content: Object.fromEntries(given) });
  };
  const form = useRef<HTMLFormElement>(null);
  /** The browser says what is missing or wrong, at the first field that is. */
  const send = () => {
    if (form.current?.reportValidity()) accept(values);
  };
  useEffect(() => {
    // Who writes elsewhere goes on there; who does not may write at once.
    const active = document.activeElement;
    const isWritten = active?.closest("dialog, select") || ((active as HTMLInputElement | null)?.value && active?.matches("input, textarea"));
    if (!isWritten) form.current?.querySelector<HTMLElement>(".field :is(textarea, input, select)")?.focus();
  }, []);
  const hasButtons = quick !== undefined && choices(quick[1]).length <= 8;
  return (
    <form
      ref={form}
      onSubmit={(event) => {
        event.preventDefault();
        if (arming.isArmed && isWhole) send();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.shiftKey || isComposing(event) || isCoarse.matches) return;
        if (!(event.target instanceof HTMLTextAreaElement)) return;
        event.preventDefault();
        form.current?.requestSubmit();
      }}
    >
      <h2 class="question-title">
        <Icon name="ask" />
        <span>
          <Words text={message} />
        </span>
      </h2>
      {quick && hasButtons ? (
        <div class="answers">
          {choices(quick[1]).map((choice) => (
            <button key={choice.value} type="button" class="answer" {...arming.button(false, () => accept({ [quick[0]]: choice.value }))}>
              {choice.title}
            </button>
          ))}
        </div>
      ) : (
        <div class="fields">
          {fields.map(([name, field]) => (
            <Field
              key={name}
              name={name}
              field={field}
              isRequired={required.has(name)}
              value={values[name]}
              onChange={(value) => fill(name, value)}
            />
          ))}
        </div>
      )}
      <div class="buttons">
        {!hasButtons && (
          <button class="answer is-allow_once" {...arming.button(!isWhole, send)}>
            Send
          </button>
        )}
        <button type="button" class="link skip" {...arming.button(false, () => question.answer({ action: "decline" }))}>
          Skip
        </button>
      </div>
    </form>
  );
}

interface FieldProps {
  name: string;
  field: FormField;
  isRequired: boolean;
  value: unknown;
  onChange: (value: unknown) => void;
}

function Field({ name, field, isRequired, value, onChange }: FieldProps): JSX.Element {
  const label = field.title ?? name;
  const id = `field-${name}`;
  const hint = field.description ? `${id}-hint` : undefined;
  return (
    <div class="field">
      <label for={id}>
        {label}
        {isRequired && <span class="quiet"> (needed)</span>}
      </label>
      {field.description && (
        <p id={hint} class="quiet">
          {field.description}
        </p>
      )}
      <Input shared={{ id, "aria-describedby": hint, required: isRequired }} field={field} value={value} onChange={onChange} />
    </div>
  );
}

interface InputProps {
  /** What every kind of input has. */
  shared: { id: string; "aria-describedby": string | undefined; required: boolean };
  field: FormField;
  value: unknown;
  onChange: (value: unknown) => void;
}

function Input({ shared, field, value, onChange }: InputProps): JSX.Element {
  const options = choices(field.type === "array" ? (field.items ?? {}) : field);
  if (field.type === "boolean") {
    // No is an answer too: it need not be ticked.
    return <input {...shared} required={false} type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
  }
  if (options.length) {
    const isMany = field.type === "array";
    return (
      <select
        {...shared}
        multiple={isMany}
        ref={(element) => element?.setCustomValidity(isMany ? countFault(field, value as string[]) : "")}
        onChange={(event) => {
          const chosen = [...event.currentTarget.selectedOptions].map((option) => option.value);
          onChange(isMany ? chosen : chosen[0]);
        }}
      >
        {!isMany && <option value="">–</option>}
        {options.map((option) => (
          <option key={option.value} value={option.value} selected={isMany ? (value as string[]).includes(option.value) : value === option.value}>
            {option.title}
          </option>
        ))}
      </select>
    );
  }
  if (field.type === "number" || field.type === "integer") {
    return (
      <input
        {...shared}
        type="number"
        step={field.type === "integer" ? 1 : "any"}
        min={field.minimum}
        max={field.maximum}
        value={value as number}
        onInput={(event) => onChange(Number.isNaN(event.currentTarget.valueAsNumber) ? undefined : event.currentTarget.valueAsNumber)}
      />
    );
  }
  const words = {
    ...shared,
    minLength: field.minLength,
    maxLength: field.maxLength,
    value: value as string,
    onInput: (event: { currentTarget: { value: string } }) => onChange(event.currentTarget.value),
  };
  const type = INPUT_TYPES[field.format ?? ""];
  // Which of them it is makes no difference to the properties that it has here.
  return type ? <input {...words} type={type as "url"} /> : <textarea {...words} rows={1} />;
}

/** What is wrong with how many were chosen; the browser knows of one that is needed, and of no number. */
function countFault({ minItems = 0, maxItems = Infinity }: FormField, chosen: string[]): string {
  if (chosen.length && chosen.length < minItems) return `Choose at least ${minItems}.`;
  return chosen.length > maxItems ? `Choose at most ${maxItems}.` : "";
}

function choices(field: FormField): { value: string; title: string }[] {
  const titled = field.oneOf ?? field.anyOf;
  if (titled) return titled.map((one) => ({ value: one.const, title: one.title ?? one.const }));
  return (field.enum ?? []).map((value, index) => ({ value, title: field.enumNames?.[index] ?? value }));
}

function initial(field: FormField): unknown {
  if (field.format === "date-time" && field.default !== undefined) return localTime(String(field.default));
  if (field.default !== undefined) return field.default;
  return field.type === "boolean" ? false : field.type === "array" ? [] : field.type === "string" ? "" : undefined;
}

/** A moment as the browser's input has it, in the time of this place; empty if it is none. */
function localTime(text: string): string {
  const moment = new Date(text);
  if (isNaN(moment.getTime())) return "";
  return new Date(moment.getTime() - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}
