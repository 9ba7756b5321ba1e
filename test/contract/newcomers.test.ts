/** Live answers of registration, binding and passkeys, checked against the document. */
import { describe } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { type Answer, jsonPost, makeKeyPair, send } from '../world/agent.ts';
import {
  approveWith,
  assertionFor,
  enrol,
  registerBegin,
  registerFinish,
  signBegin,
  signFinish,
} from '../world/passkeys.ts';
import { Authenticator } from '../world/software-authenticator.ts';
import { HOUR_MS } from '../world/times.ts';
import { givenWorld, shared } from '../world/world.ts';
import { makeShow } from './shown.ts';

const { publicPem } = makeKeyPair();

const world = givenWorld();
const organisation = shared(() => world.demoOrganisation({ rules: [{ effect: 'allow' }] }));
const stranger = shared(() => world.organisation());
const agent = shared(() => organisation.agent());

const show = makeShow(() => world.running.baseUrl);
const get = (path: string) => send(world.running.baseUrl + path, {});
const post = (path: string, body: unknown, from?: string): Promise<Answer> =>
  send(world.running.baseUrl + path, { ...jsonPost(body), ...(from !== undefined && { from }) });
/** Returns what `ask` returns after this time has passed. */
async function later(ms: number, ask: () => Promise<Answer>): Promise<Answer> {
  world.clock.skewMs += ms;
  try {
    return await ask();
  } finally {
    world.clock.skewMs -= ms;
  }
}

let names = 0;
const asking = () => ({
  owner_id: organisation.owner.id,
  agent_name: `newcomer ${++names}`,
  requested_scopes: [{ platformId: 'demo', scopes: ['demo:read'] }],
});
/** Registers from an address of its own: the number of open registrations per address is limited. */
const registered = async (): Promise<string> =>
  (await post('/v1/register', asking(), `127.0.0.${50 + names}`)).body.registration_token;
const decide = (how: 'approve' | 'reject', token: string) => organisation.ask('POST', `/v1/register/${how}/${token}`);
/** Two approved registrations, shared because each costs a key pair: the key of the second is not collected. */
const tokens: Promise<string>[] = [];
const approved = (which: 0 | 1 = 0): Promise<string> => {
  tokens[which] ??= registered().then(async (token) => {
    await decide('approve', token);
    return token;
  });
  return tokens[which];
};
const decidedByViewer = async (how: 'approve' | 'reject') => {
  const viewer = await organisation.addOwner('viewer');
  return await organisation.ask('POST', `/v1/register/${how}/${await registered()}`, undefined, viewer);
};
const UNKNOWN = `reg_${'A'.repeat(43)}`;

describe('registration', () => {
  show('POST /v1/register → 202', () => post('/v1/register', asking()));
  show('POST /v1/register → 400: no owner', () => post('/v1/register', { agent_name: 'x' }));
  show('GET /v1/register/status/{token} → 200: pending', async () => get(`/v1/register/status/${await registered()}`));
  show('GET /v1/register/status/{token} → 200: approved', async () => get(`/v1/register/status/${await approved()}`));
  show('GET /v1/register/status/{token} → 404', () => get(`/v1/register/status/${UNKNOWN}`));
  show('POST /v1/register/approve/{token} → 200', async () => decide('approve', await registered()));
  show('POST /v1/register/approve/{token} → 401: no owner', async () =>
    post(`/v1/register/approve/${await registered()}`, {}),
  );
  show('POST /v1/register/approve/{token} → 401: a wrong signature', async () => {
    const session = `${mintOwnerSession(world.running.broker, organisation.owner).token.slice(0, -8)}AAAAAAAA`;
    const headers = { authorization: `Bearer ${session}` };
    return await send(`${world.running.baseUrl}/v1/register/approve/${await registered()}`, {
      method: 'POST',
      headers,
    });
  });
  show('POST /v1/register/approve/{token} → 403: an owner who may not decide', () => decidedByViewer('approve'));
  show('POST /v1/register/approve/{token} → 404', () => decide('approve', UNKNOWN));
  show('POST /v1/register/reject/{token} → 200', async () => decide('reject', await registered()));
  show('POST /v1/register/reject/{token} → 401: no owner', async () =>
    post(`/v1/register/reject/${await registered()}`, {}),
  );
  show('POST /v1/register/reject/{token} → 403: an owner who may not decide', () => decidedByViewer('reject'));
  show('POST /v1/register/reject/{token} → 404', () => decide('reject', UNKNOWN));
  show('GET /v1/register/stream/{token} → 200: the whole stream', async () =>
    get(`/v1/register/stream/${await approved()}`),
  );
  show('GET /v1/register/stream/{token} → 404', () => get(`/v1/register/stream/${UNKNOWN}`));
  const claim = (token: string) => get(`/v1/register/claim-key/${token}`);
  show('GET /v1/register/claim-key/{token} → 200', async () => claim(await approved()));
  show('GET /v1/register/claim-key/{token} → 404', () => claim(UNKNOWN));
  show('GET /v1/register/claim-key/{token} → 409: not approved yet', async () => claim(await registered()));
  show('GET /v1/register/claim-key/{token} → 410: collected already', async () => {
    const token = await approved();
    await claim(token);
    return await claim(token);
  });
  show('GET /v1/register/claim-key/{token} → 410: too late', async () => {
    const token = await approved(1);
    return await later(2 * HOUR_MS, () => claim(token));
  });
});

describe('binding', () => {
  const bootstrap = async () => {
    const unbound = await organisation.agent({ agent: { status: 'pending_bind' } });
    return (await organisation.ask('POST', `/owner/agents/${unbound.agentId}/bootstrap-token`)).body.bootstrap_token;
  };
  const bind = (bootstrap_token: string, public_key_pem = publicPem) =>
    post('/v1/agents/bind', { bootstrap_token, public_key_pem });
  show('POST /v1/agents/bind → 200', async () => bind(await bootstrap()));
  show('POST /v1/agents/bind → 400: no public key', async () => bind(await bootstrap(), 'x'));
  show('POST /v1/agents/bind → 410: no such token', () => bind(`abt_${'A'.repeat(43)}`));

  const invite = async () =>
    (await organisation.ask('POST', '/owner/invites', { agent_name: `invited ${++names}` })).body.bind_secret;
  const accept = (bind_secret: string, public_key_pem = publicPem) =>
    post('/v1/invites/bind', { bind_secret, public_key_pem });
  show('POST /v1/invites/bind → 200', async () => accept(await invite(), makeKeyPair().publicPem));
  show('POST /v1/invites/bind → 400: no public key', async () => accept(await invite(), 'x'));
  show('POST /v1/invites/bind → 410: claimed already', async () => {
    const secret = await invite();
    const { publicPem: fresh } = makeKeyPair();
    await accept(secret, fresh);
    return await accept(secret, fresh);
  });
});

describe('passkeys', () => {
  const ROOT = '/v1/approvals/passkeys';
  const made = () => new Authenticator(world.running.baseUrl);
  const finish = (response: unknown) => registerFinish(organisation, { response, device_name: 'Phone' });
  const created = async (with_ = made()) => with_.create((await registerBegin(organisation)).body);
  const hold = () =>
    agent.hold({ platform: 'demo', endpoint: '/items', method: 'POST', scope: 'demo:write', data: {} });
  const key = shared(() => enrol(world, organisation));

  show('POST /v1/approvals/passkeys/register/begin → 200', () => registerBegin(organisation));
  show('POST /v1/approvals/passkeys/register/begin → 401: no owner', () => post(`${ROOT}/register/begin`, {}));
  show('POST /v1/approvals/passkeys/register/finish → 200', async () => finish(await created()));
  show('POST /v1/approvals/passkeys/register/finish → 400: another challenge', async () => {
    const response = await created();
    response.response.clientDataJSON = Buffer.from('{}').toString('base64url');
    return await finish(response);
  });
  show('POST /v1/approvals/passkeys/register/finish → 401: no owner', () => post(`${ROOT}/register/finish`, {}));
  show('POST /v1/approvals/passkeys/register/finish → 409: enrolled already', async () => {
    const twice = made();
    await finish(await created(twice));
    return await finish(await created(twice));
  });
  show('POST /v1/approvals/passkeys/register/finish → 410: an expired challenge', async () => {
    const response = await created();
    return await later(6 * 60_000, () => finish(response));
  });
  show('POST /v1/approvals/passkeys/sign/begin → 200', async () => signBegin(world, await hold()));
  show('POST /v1/approvals/passkeys/sign/begin → 400: a malformed id', () => signBegin(world, 'x'));
  show('POST /v1/approvals/passkeys/sign/begin → 404', () => signBegin(world, stranger.id));
  show('POST /v1/approvals/passkeys/sign/finish → 200', async () => approveWith(world, await hold(), key));
  show('POST /v1/approvals/passkeys/sign/finish → 400: a decreased counter', async () => {
    const cloned = await enrol(world, organisation);
    await approveWith(world, await hold(), cloned, { counter: 9 });
    return await approveWith(world, await hold(), cloned, { counter: 3 });
  });
  show('POST /v1/approvals/passkeys/sign/finish → 400: an empty assertion', () => signFinish(world, {}));
  show('POST /v1/approvals/passkeys/sign/finish → 409: decided already', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await organisation.ask('POST', `/owner/approvals/${id}/deny`);
    return await signFinish(world, response);
  });
  show('POST /v1/approvals/passkeys/sign/finish → 410: an expired challenge', async () => {
    const response = await assertionFor(world, await hold(), key);
    return await later(6 * 60_000, () => signFinish(world, response));
  });
  show('POST /v1/approvals/passkeys/sign/finish → 404: a deleted approval', async () => {
    const id = await hold();
    const response = await assertionFor(world, id, key);
    await world.db.deleteFrom('approvals').where('id', '=', id).execute();
    return await signFinish(world, response);
  });
});
