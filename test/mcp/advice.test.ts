/** The advice for a model after a refusal. */
import { expect, test } from 'vitest';
import { BrokerError } from '../../mcp/client/broker-error.ts';
import { afterDenial, afterError, afterNotReady } from '../../mcp/tools/advice.ts';
import { consentAnswer } from '../../mcp/tools/outcome-answer.ts';

const about = { platform: 'codehost', scope: 'codehost:issues.read' };
const denied = (violating: string[]) =>
  afterDenial(
    {
      kind: 'denied',
      reason: 'repo_not_allowed',
      detail: '',
      requestable: false,
      notGrantable: false,
      violating,
      limit: undefined,
      retryAfterSeconds: undefined,
      platform: undefined,
      auditId: undefined,
    },
    about,
  );

test('a repository that is not allowed: the advice is to have an owner allow it; an endpoint beyond the limits: to call another one', () => {
  expect(denied(['evil/app'])).toContain('Do not go on with evil/app: an owner has to allow it first.');
  expect(denied([])).toContain('Call another endpoint');
  expect(denied([])).not.toContain('an owner has to allow it');
});

test('a call that no scope covers, such as of a changed tool: the advice is not to request a scope, and to tell the person', () => {
  const next = afterDenial(
    {
      kind: 'denied',
      reason: 'endpoint_scope_mismatch',
      detail: 'tool search has changed since it was accepted. An owner has to review and accept it',
      requestable: false,
      notGrantable: false,
      violating: [],
      limit: undefined,
      retryAfterSeconds: undefined,
      platform: undefined,
      auditId: undefined,
    },
    about,
  );
  expect(next).toContain('no scope helps: do not ask for one');
  expect(next).toContain('If an owner has to accept the tool, tell the person');
});

test('a response that is withheld: the advice is not to repeat a read, and to check the platform after a write', () => {
  const read = new BrokerError('upstream_response_blocked', 'A rule masks it.', { mayHaveActed: false });
  expect(afterError(read, false)).toMatch(/^Do not repeat it: its response would be withheld again\./);
  const write = new BrokerError('upstream_response_blocked', 'A rule masks it.', { mayHaveActed: true });
  expect(afterError(write, true)).toContain('may have been made: check the platform with read_platform');
});

test('a connection that was granted too little: owners who were not asked are not said to have been', () => {
  const outcome = {
    kind: 'not_ready',
    code: 'needs_consent',
    message: '',
    reason: undefined,
    requestToken: undefined,
    consentUrl: 'https://broker.example/console/connections?connect=1',
    consentToken: undefined,
    expiresAt: undefined,
    auditId: undefined,
  } as const;
  expect(afterNotReady({ ...outcome, requestToken: 'arq_1' }, about)).toContain('The owners have been asked.');
  const unasked = afterNotReady(outcome, about);
  expect(unasked).not.toContain('have been asked');
  expect(unasked).toContain('that an owner has to connect codehost again and grant it more');
  expect(unasked).toContain('https://broker.example/console/connections?connect=1');
});

test('a person who consented to less than the platform requires: the call, which the platform refused, is not said to be unsent', () => {
  const url = 'https://broker.example/me/consent/1';
  const { structuredContent } = consentAnswer({
    kind: 'not_ready',
    code: 'consent_required',
    message: 'The platform refused the call: this person has consented to less than it needs.',
    reason: 'not_consented',
    requestToken: undefined,
    consentUrl: url,
    consentToken: 'cns_1',
    expiresAt: undefined,
    auditId: undefined,
  });
  expect(structuredContent.detail).not.toContain('Nothing was sent');
  expect(structuredContent.detail).toContain('The call was not made.');
  expect(structuredContent.next).toContain(url);
});
