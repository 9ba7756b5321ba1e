/** Tests that are named by the route and status that they show, and whose answers are checked against the document. */
import { expect, test } from 'vitest';
import type { Answer } from '../world/agent.ts';
import { makeExpectation, servedDocument } from './document.ts';

/** `POST /v1/actions → 403`, optionally followed by a colon and the case. docs/coverage.md is built from these names. */
export type Shown = `${'GET' | 'POST'} /${string} → ${number}${'' | `: ${string}`}`;

const NAME = /^((?:GET|POST) \S+) → (\d{3})(?:: .+)?$/;

/**
 * Returns a function that defines such tests for a broker, whose address is read when the first of them runs. The answer must have the status in the
 * name, and match the document.
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
