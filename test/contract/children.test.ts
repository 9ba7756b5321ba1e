/** Live answers about child identities and sealed secrets, checked against the document. */
import { CompactEncrypt, importJWK } from 'jose';
import { describe } from 'vitest';
import { type Answer, jsonPost, send, type TestAgent } from '../world/agent.ts';
import { givenWorld, shared } from '../world/world.ts';
import { makeShow } from './shown.ts';

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation());
const agent = shared(() => organisation.agent());

const show = makeShow(() => world.running.baseUrl);
const post = (path: string, body: unknown, bearer?: string): Promise<Answer> =>
  send(world.running.baseUrl + path, jsonPost(body, bearer === undefined ? {} : { authorization: `Bearer ${bearer}` }));

describe('children', () => {
  const PATH = '/v1/agents/children';
  const wish = (scopes = ['demo:read']) => ({ grants: [{ platform: 'demo', scopes }] });
  const issue = (by: TestAgent, body: unknown = wish()) => by.post(PATH, body);
  show('POST /v1/agents/children → 201', () => issue(agent));
  show('POST /v1/agents/children → 400: no scope remains', () => issue(agent, wish(['demo:none'])));
  show('POST /v1/agents/children → 400: no grants', () => issue(agent, {}));
  show('POST /v1/agents/children → 401: no bearer', () => post(PATH, wish()));
  show('POST /v1/agents/children → 403: a child cannot have children', async () =>
    post(PATH, wish(), (await issue(agent)).body.bearer_token),
  );
  show('POST /v1/agents/children → 403: an agent that is suspended', async () =>
    issue(await organisation.agent({ agent: { status: 'suspended', status_cause: 'owner_manual' } })),
  );
  show('POST /v1/agents/children → 403: an agent whose breaker is open', async () => {
    const halted = await organisation.agent();
    for (let n = 0; n < 50; n++) await halted.post('/v1/actions', {});
    return await issue(halted);
  });
  show('POST /v1/agents/children → 409: too many live children', async () => {
    const parent = await organisation.agent();
    let answer = await issue(parent);
    for (let n = 0; n < 60 && answer.status === 201; n++) answer = await issue(parent);
    return answer;
  });
  show('GET /v1/agents/me → 200: a child, by its bearer', async () => {
    const { bearer_token } = (await issue(agent)).body;
    return await send(`${world.running.baseUrl}/v1/agents/me`, {
      headers: { authorization: `Bearer ${bearer_token}` },
    });
  });
});

describe('sealed secrets', () => {
  const seal = async (content: unknown): Promise<string> => {
    const [key] = (await send(`${world.running.baseUrl}/.well-known/svc-secret-keys.json`, {})).body.keys;
    return await new CompactEncrypt(Buffer.from(JSON.stringify(content)))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A256GCM', kid: key.kid })
      .encrypt(await importJWK(key, 'ECDH-ES'));
  };
  show('POST /v1/bind-secret → 200', async () => {
    const asked = { agent: agent.agentId, platform: 'demo' };
    const { authorization } = (await organisation.ask('POST', '/owner/secret-authorizations', asked)).body;
    const encrypted_secret = await seal({ authorization, secret: 'a secret of one agent' });
    return await post('/v1/bind-secret', { agent_id: agent.agentId, platform_id: 'demo', encrypted_secret });
  });
  show('POST /v1/bind-secret → 400: not authorised', async () =>
    post('/v1/bind-secret', { agent_id: agent.agentId, platform_id: 'demo', encrypted_secret: await seal({}) }),
  );
});
