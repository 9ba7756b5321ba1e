/** Live answers of governed git, checked against the document. */
import { beforeAll, describe, expect, test } from 'vitest';
import { github } from '../../broker/platforms/builtin/github.ts';
import { type Answer, send, type TestAgent } from '../world/agent.ts';
import { type GitWorld, startGitWorld } from '../world/git-world.ts';
import { shared } from '../world/world.ts';
import { type Json, operationOf, servedDocument } from './document.ts';
import { makeShow } from './shown.ts';

const given: GitWorld = shared(() => startGitWorld('sqlite', { GIT_MAX_REQUEST_BYTES: '1024' }));
const agent: TestAgent = shared(() => given.agent());
const reader: TestAgent = shared(() => given.agent({ scopes: [] }));
let unconnected: TestAgent;
beforeAll(async () => {
  given.host.repository('acme/app');
  const organisation = await given.world.organisation();
  await organisation.platform({ id: 'codehost', secret: null, manifest: github });
  unconnected = await organisation.agent({
    rules: [{ effect: 'allow' }],
    grants: { codehost: { scopeList: ['codehost:contents.read', 'codehost:contents.write'] } },
  });
});

const show = makeShow(() => given.world.running.baseUrl);

function ask(by: TestAgent | undefined, service: string, what: 'advertisement' | 'request', body = '0000') {
  const tail = what === 'advertisement' ? `info/refs?service=${service}` : service;
  return send(`${given.world.running.baseUrl}/git/acme/app.git/${tail}`, {
    method: what === 'advertisement' ? 'GET' : 'POST',
    headers: {
      ...(by && { authorization: `Basic ${Buffer.from(`x:${by.token()}`).toString('base64')}` }),
      ...(what === 'request' && { 'content-type': `application/x-${service}-request` }),
    },
    ...(what === 'request' && { body }),
  });
}

/** Runs `work` while the code host answers 503. */
async function whileAway(work: () => Promise<Answer>): Promise<Answer> {
  given.host.answer = (_, response) => response.writeHead(503).end();
  try {
    return await work();
  } finally {
    given.host.answer = undefined;
  }
}

describe('governed git', () => {
  const REFS = 'GET /git/{owner}/{repo}/info/refs';
  show(`${REFS} → 200: to fetch`, () => ask(agent, 'git-upload-pack', 'advertisement'));
  show(`${REFS} → 200: to push`, () => ask(agent, 'git-receive-pack', 'advertisement'));
  show(`${REFS} → 401`, () => ask(undefined, 'git-upload-pack', 'advertisement'));
  show(`${REFS} → 403`, () => ask(reader, 'git-upload-pack', 'advertisement'));
  show(`${REFS} → 412`, () => ask(unconnected, 'git-upload-pack', 'advertisement'));
  show(`${REFS} → 502`, () => whileAway(() => ask(agent, 'git-upload-pack', 'advertisement')));

  const FETCH = 'POST /git/{owner}/{repo}/git-upload-pack';
  show(`${FETCH} → 200`, () => ask(agent, 'git-upload-pack', 'request'));
  show(`${FETCH} → 401`, () => ask(undefined, 'git-upload-pack', 'request'));
  show(`${FETCH} → 403`, () => ask(reader, 'git-upload-pack', 'request'));
  show(`${FETCH} → 412`, () => ask(unconnected, 'git-upload-pack', 'request'));
  show(`${FETCH} → 413`, () => ask(agent, 'git-upload-pack', 'request', 'x'.repeat(1025)));
  show(`${FETCH} → 502`, () => whileAway(() => ask(agent, 'git-upload-pack', 'request')));

  const PUSH = 'POST /git/{owner}/{repo}/git-receive-pack';
  show(`${PUSH} → 200`, () => ask(agent, 'git-receive-pack', 'request'));
  show(`${PUSH} → 401`, () => ask(undefined, 'git-receive-pack', 'request'));
  show(`${PUSH} → 403`, () => ask(reader, 'git-receive-pack', 'request'));
  show(`${PUSH} → 412`, () => ask(unconnected, 'git-receive-pack', 'request'));
  show(`${PUSH} → 413`, () => ask(agent, 'git-receive-pack', 'request', 'x'.repeat(1025)));
  show(`${PUSH} → 502`, () => whileAway(() => ask(agent, 'git-receive-pack', 'request')));

  test('the document names the request headers that a client can set', async () => {
    const document = await servedDocument(given.world.running.baseUrl);
    for (const operation of [REFS, FETCH, PUSH]) {
      const { parameters } = operationOf(document, operation);
      const headers = parameters.flatMap((one: Json) => (one.in === 'header' ? [one.name] : []));
      expect(headers, operation).toEqual(['X-Svc-Caller', 'traceparent', 'X-Svc-Session', 'Git-Protocol']);
    }
  });
});
