/** Tests that are named by the route and the status that they show, and whose answers are held to the document. */
import { expect, test } from 'vitest';
import type { Answer } from '../world/agent.ts';
import { makeExpectation, servedDocument } from './document.ts';

/** `POST /v1/actions → 403`, and after a colon what for. docs/coverage.md is made of these names. */
export type Shown = `${'GET' | 'POST'} /${string} → ${number}${'' | `: ${string}`}`;

const NAME = /^((?:GET|POST) \S+) → (\d{3})(?:: .+)?$/;

/**
 * A maker of such tests for a broker, which is asked for when the first of them runs. The answer has the status of the name,
 * and is what the document says of it.
 */
export function makeShow(baseUrl: () => string): (name: Shown, ask: () => Promise<Answer>) => void {
  let expectation: Promise<ReturnType<typeof makeExpectation>> | undefined;
  return (name, ask) => {
    test(name, async () => {
      const [, operation = '', status] = NAME.exec(name) ?? [];
      expectation ??= servedDocument(baseUrl()).then(makeExpectation);
      const answer = await ask();
      expect(answer.status, answer.text).toBe(Number(status));
      (await expectation)(operation, answer);
    });
  };
}
