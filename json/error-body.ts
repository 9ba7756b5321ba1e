/** Formats refusals like a platform's own errors, so that its clients show the reason. */
import type { JsonValue } from './json-value.ts';

/** `detail`: the reason, and what to do next, as the clients show it. */
export type Refused = { status: number; code: string; detail: string };

const HOLDER = /\{(detail|code|status)\}/g;

/**
 * Fills the body that a manifest describes (`error_body`): an object for JSON, a text for XML. In its texts `{detail}`, `{code}` and `{status}` are
 * placeholders; a text that is only `{status}` becomes a number.
 */
export function errorBody(template: JsonValue, refused: Refused): { type: string; body: string } {
  if (typeof template === 'string')
    return {
      type: 'application/xml',
      body: template.replaceAll(HOLDER, (_, name: keyof Refused) => inXml(String(refused[name]))),
    };
  return { type: 'application/json', body: JSON.stringify(filled(template, refused)) };
}

function filled(value: JsonValue, refused: Refused): JsonValue {
  if (value === '{status}') return refused.status;
  if (typeof value === 'string') return value.replaceAll(HOLDER, (_, name: keyof Refused) => String(refused[name]));
  if (Array.isArray(value)) return value.map((one) => filled(one, refused));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, filled(one, refused)]));
}

const ENTITIES: Readonly<Record<string, string>> = {
  '<': '&lt;',
  '>': '&gt;',
  '&': '&amp;',
  '"': '&quot;',
  "'": '&apos;',
};

/** Escapes a text for XML 1.0, and removes characters that XML cannot represent. */
const inXml = (text: string): string =>
  text.replaceAll(/[<>&"']/g, (char) => ENTITIES[char] ?? '').replaceAll(/[^\t\n\r\x20-\ud7ff\ue000-\ufffd]/g, '');
