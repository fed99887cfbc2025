// A form that the agent, or a server that it uses, asks the person to fill in.

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import type { FormField } from "../acp";
import type { FormQuestion } from "../model/questions";
import { Icon } from "./icons";

type Values = Record<string, unknown>;

export function FormView({ question, isArmed }: { question: FormQuestion; isArmed: boolean }): JSX.Element {
  const { message, requestedSchema: schema } = question.request;
  const fields = Object.entries(schema?.properties ?? {});
  const required = new Set(schema?.required ?? []);
  const [values, setValues] = useState<Values>(() => Object.fromEntries(fields.map(([name, field]) => [name, initial(field)])));
  const isWhole = [...required].every((name) => isGiven(values[name]));
  const only = fields.length === 1 ? fields[0] : undefined;
  const quick = only && choices(only[1]).length > 0 && only[1].type !== "array" ? only : undefined;
  const accept = (content: Values) => {
    const given = Object.entries(content).filter(([, value]) => isGiven(value));
    question.answer({ action: "accept", content: Object.fromEntries(given) });
  };
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        if (isArmed && isWhole) accept(values);
      }}
    >
      <h2 class="question-title">
        <Icon name="ask" /> <span>{message}</span>
      </h2>
      {quick && choices(quick[1]).length <= 8 ? (
        <div class="answers">
          {choices(quick[1]).map((choice) => (
            <button key={choice.value} type="button" class="answer" disabled={!isArmed} onClick={() => accept({ [quick[0]]: choice.value })}>
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
              onChange={(value) => setValues({ ...values, [name]: value })}
            />
          ))}
          <button class="answer is-allow_once" disabled={!isArmed || !isWhole}>
            Send
          </button>
        </div>
      )}
      <div class="buttons">
        <button type="button" class="link" disabled={!isArmed} onClick={() => question.answer({ action: "decline" })}>
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
      <Input id={id} hint={hint} field={field} value={value} onChange={onChange} />
    </div>
  );
}

interface InputProps {
  id: string;
  hint: string | undefined;
  field: FormField;
  value: unknown;
  onChange: (value: unknown) => void;
}

function Input({ id, hint, field, value, onChange }: InputProps): JSX.Element {
  const options = choices(field.type === "array" ? (field.items ?? {}) : field);
  if (field.type === "boolean") {
    return <input id={id} aria-describedby={hint} type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
  }
  if (options.length) {
    const isMany = field.type === "array";
    return (
      <select
        id={id}
        aria-describedby={hint}
        multiple={isMany}
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
        id={id}
        aria-describedby={hint}
        type="number"
        step={field.type === "integer" ? 1 : "any"}
        min={field.minimum}
        max={field.maximum}
        value={value as number}
        onInput={(event) => onChange(Number.isNaN(event.currentTarget.valueAsNumber) ? undefined : event.currentTarget.valueAsNumber)}
      />
    );
  }
  return (
    <textarea
      id={id}
      aria-describedby={hint}
      rows={1}
      maxLength={field.maxLength}
      value={value as string}
      onInput={(event) => onChange(event.currentTarget.value)}
    />
  );
}

function choices(field: FormField): { value: string; title: string }[] {
  const titled = field.oneOf ?? field.anyOf;
  if (titled) return titled.map((one) => ({ value: one.const, title: one.title ?? one.const }));
  return (field.enum ?? []).map((value, index) => ({ value, title: field.enumNames?.[index] ?? value }));
}

function initial(field: FormField): unknown {
  if (field.default !== undefined) return field.default;
  return field.type === "boolean" ? false : field.type === "array" ? [] : field.type === "string" ? "" : undefined;
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== "";
}
