/** Checks the members of every refusal of an authorization query (specification, Error shapes: Problem; RFC 7807). */
import { STATUS_CODES } from 'node:http';
import { expect } from 'vitest';
import type { Answer } from './agent.ts';

export function expectProblem(answer: Answer, status: number, error: string): void {
  expect([answer.status, answer.body.error], answer.text).toEqual([status, error]);
  expect(answer.headers.get('content-type')).toBe('application/problem+json');
  expect(answer.body).toMatchObject({ title: STATUS_CODES[status], status });
  expect(answer.body.detail).toMatch(/^\S.{10,}/s);
  expect(answer.body.correlation_id).toBe(answer.headers.get('x-correlation-id'));
}
