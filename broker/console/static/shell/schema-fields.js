// Form fields generated from the JSON Schema of the settings, so that a new kind of channel or audit sink needs no code here.
import { html, useId } from '/console/html.js';
import { valueTo } from '/console/shell/fields.js';

/**
 * @typedef {{
 *   type?: string, description?: string, format?: string, enum?: string[], pattern?: string,
 *   minimum?: number, maximum?: number, maxLength?: number, items?: Schema, properties?: Record<string, Schema>, required?: string[],
 * }} Schema
 */

/** Returns the label of a setting: `service_url` is `Service url`. */
export const nameOf = (/** @type {string} */ key) => {
  const words = key.replaceAll('_', ' ');
  return words === 'url' ? 'Address' : `${words.slice(0, 1).toUpperCase()}${words.slice(1)}`;
};

const isList = (/** @type {Schema} */ { type, items }) => type === 'array' && items?.type === 'string';
const isPlain = (/** @type {Schema} */ { type }) => type === 'string' || type === 'integer' || type === 'number';

/** Formats a value for its field. @param {Schema} schema @param {unknown} value */
export function textOf(schema, value) {
  if (value === undefined || value === null) return '';
  if (isList(schema)) return /** @type {string[]} */ (value).join('\n');
  return isPlain(schema) || schema.type === 'boolean' ? String(value) : JSON.stringify(value, null, 2);
}

/**
 * Parses the text of a field; undefined when it is empty. Throws an error with a message for a person when a field for JSON contains something
 * else.
 *
 * @param {string} key
 * @param {Schema} schema
 * @param {string} text
 */
export function givenOf(key, schema, text) {
  const written = text.trim();
  if (written === '') return undefined;
  if (schema.type === 'boolean') return written === 'true';
  if (schema.type === 'integer' || schema.type === 'number') return Number(written);
  if (schema.type === 'string') return written;
  if (isList(schema)) return listOf(written);
  try {
    return JSON.parse(written);
  } catch {
    throw new Error(`${nameOf(key)}: is not JSON.`);
  }
}

/** Splits a list with one entry per line, or separated by commas. */
export const listOf = (/** @type {string} */ text) =>
  text
    .split(/[\n,]/)
    .map((one) => one.trim())
    .filter((one) => one !== '');

/** Returns the fields of an object, required ones first. @param {Schema} schema */
export function fieldsOf({ properties = {}, required = [] }) {
  const fields = Object.entries(properties).map(([name, schema]) => ({
    name,
    schema,
    required: required.includes(name),
  }));
  return fields.toSorted((a, b) => Number(b.required) - Number(a.required));
}

/**
 * One field of the schema.
 *
 * @param {{ name: string, schema: Schema, required: boolean, value: string, onValue: (value: string) => void }} props
 */
export function Field({ name, schema, required, value, onValue }) {
  const id = useId();
  const hint = `${id}-hint`;
  const common = { id, required, 'data-field': name, 'aria-describedby': hint, onInput: valueTo(onValue) };
  const choices = schema.enum ?? (schema.type === 'boolean' ? ['true', 'false'] : undefined);
  const type = schema.format === 'uri' ? 'url' : schema.format === 'email' ? 'email' : 'text';
  const input = choices
    ? html`<select ...${common}>
        <option value="" selected=${value === ''}>${required ? 'Choose…' : 'Default'}</option>
        ${choices.map((one) => html`<option key=${one} value=${one} selected=${one === value}>${one}</option>`)}
      </select>`
    : schema.type === 'integer' || schema.type === 'number'
      ? html`<input ...${common} type="number" min=${schema.minimum} max=${schema.maximum} value=${value} />`
      : schema.type === 'string'
        ? html`<input ...${common} type=${type} maxlength=${schema.maxLength} autocomplete="off" spellcheck="false" value=${value} />`
        : html`<textarea ...${common} rows="2" spellcheck="false" value=${value}></textarea>`;
  return html`<div class="field">
    <label for=${id}>${nameOf(name)}${required ? '' : html` <span class="quiet">(optional)</span>`}</label>
    ${input}
    <span class="hint" id=${hint}>${schema.description ?? ''}${isList(schema) ? ' One a line.' : ''}</span>
  </div>`;
}
