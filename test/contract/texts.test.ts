/** Texts of request bodies: the broker accepts exactly the characters, and as many of them, as the document states. */
import { describe, expect, test } from 'vitest';
import { type Answer, jsonPost, send } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';
import { type Json, operationOf, operationsOf, servedDocument } from './document.ts';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent());
const document = shared(() => servedDocument(world.running.baseUrl));

type Text = { at: readonly (string | number)[]; maxLength: number };

/** Lists the texts of a body without a form of their own. Longer ones are limited by the size of the whole body. */
function textsOf(schema: Json, at: Text['at'] = []): Text[] {
  const { type, maxLength = Number.POSITIVE_INFINITY, properties = {}, items, anyOf = [] } = schema;
  const isPlain = ['pattern', 'format', 'enum', 'const', 'allOf'].every((name) => !(name in schema));
  return [
    ...(type === 'string' && isPlain && maxLength < 20_000 ? [{ at, maxLength }] : []),
    ...Object.entries<Json>(properties).flatMap(([name, one]) => textsOf(one, [...at, name])),
    ...(items ? textsOf(items, [...at, 0]) : []),
    ...anyOf.flatMap((one: Json) => textsOf(one, at)),
  ];
}

/** Returns a copy of a body with a text at a place. */
function withText(body: Json, [name = '', ...rest]: Text['at'], text: string): Json {
  if (rest.length === 0 && name === '') return text;
  const copy = Array.isArray(body) || typeof name === 'number' ? [...(body ?? [])] : { ...body };
  copy[name] = rest.length === 0 ? text : withText(copy[name], rest, text);
  return copy;
}

async function ask(operation: string, body: Json): Promise<Answer> {
  const path = operation.slice('POST '.length).replace(/\{\w+\}/, 'x');
  const principals = operationOf(document, operation).security.map((one: Json) => Object.keys(one)[0]);
  if (principals.includes('agentToken')) return await agent.post(path, body);
  if (principals.includes('ownerSession')) return await organisation.ask('POST', path, body);
  return await send(world.running.baseUrl + path, jsonPost(body));
}

describe('texts of request bodies', () => {
  test('are limited exactly as the document states', { timeout: 60_000 }, async () => {
    const seen: string[] = [];
    for (const operation of operationsOf(document)) {
      const { schema, example } = operationOf(document, operation).requestBody?.content['application/json'] ?? {};
      if (schema === undefined) continue;
      for (const { at, maxLength } of textsOf(schema)) {
        const what = `${operation} ${at.join('.')}: ${maxLength} characters`;
        seen.push(what);
        await world.forgive();
        const [longest, longer] = ['é'.repeat(maxLength), 'é'.repeat(maxLength + 1)];
        // Of two bytes each, so that a limit of bytes is found.
        for (const [text, refusal] of [
          [longest, /at most|longer/],
          ['\t', /must not/],
          ['\u202e', /must not/],
        ] as const) {
          const { status, body } = await ask(operation, withText(example, at, text));
          expect(status === 400 && refusal.test(body.detail), `${what}: ${body.detail}`).toBe(false);
        }
        const refused = await ask(operation, withText(example, at, longer));
        expect(refused.status, `${what}, and one more: ${refused.text.slice(0, 200)}`).toBe(400);
      }
    }
    expect(seen.length).toBeGreaterThan(30);
  });
});
