/** The bearer of a child, and invalid variants (specification, Authentication 4). */
import { createHmac, generateKeyPairSync, sign } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { childTokenReader } from '../../broker/auth/child-token.ts';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { signCompact } from '../../broker/crypto/jws.ts';
import { generateSigningKey, importSigningKey } from '../../broker/crypto/key-set.ts';
import { type Answer, signToken } from '../world/agent.ts';
import { childOf } from '../world/child.ts';
import { auditIdOf, evidenceOf, expectDenied, expectEnvelope, withoutCalls } from '../world/evidence.ts';
import { listAuditRows } from '../world/rows.ts';
import { everythingStored, placesOf } from '../world/store-contents.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { givenWorld, READ, shared } from '../world/world.ts';

const TYPE = 'svc-child+jwt';
const part = (value: unknown) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');

describe.each(ONE_STORE)(`the bearer of a child on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = shared(() => world.demoOrganisation());
  const parent = shared(() => organisation.agent());
  const child = shared(() => childOf(world, organisation, parent));
  const sibling = shared(() => childOf(world, organisation, parent));
  const stranger = shared(() => importSigningKey(generateSigningKey()));
  beforeEach(() => world.forgive());

  const broker = () => world.running.broker;
  const claims = (token = child.bearer) => JSON.parse(Buffer.from(token.split('.')[1]!, 'base64url').toString());
  const header = () => JSON.parse(Buffer.from(child.bearer.split('.')[0]!, 'base64url').toString());
  const issuing = () => broker().keys.signer('issuing', broker().clock());
  /** The header and signature of a child's real token, with changed claims. */
  const edited = (more: Record<string, unknown>) => {
    const [first, , signature] = child.bearer.split('.');
    return `${first}.${part({ ...claims(), ...more })}.${signature}`;
  };
  /** A token with another header, signed with any key. */
  const forged = (head: Record<string, unknown>, body: unknown = claims(), key = stranger) => {
    const input = `${part(head)}.${part(body)}`;
    return `${input}.${sign('sha256', Buffer.from(input), { key: key.privateKey, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  };
  const present = (token: string) => parent.act(READ, { authorization: `Bearer ${token}` });
  /** Audit rows of calls; an opened breaker is recorded, too. */
  const rows = async () =>
    (await listAuditRows(broker().store.db, organisation.id, { limit: 200 })).filter(({ kind }) => kind === 'action');
  const strikes = () => broker().store.db.selectFrom('breakers').selectAll().execute();

  /** Expects a 401, no call, and no audit row. */
  async function refused(token: string, code: string): Promise<Answer> {
    const before = (await rows()).length;
    const answer = await withoutCalls(world, () => present(token));
    expectEnvelope(answer, 401, code);
    expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
    expect(await rows()).toHaveLength(before);
    return answer;
  }

  test('control: the unmodified token is accepted repeatedly', async () => {
    for (let call = 0; call < 3; call++) expect((await present(child.bearer)).status).toBe(200);
    expect((await parent.act(READ, { authorization: `bearer ${child.bearer}` })).status).toBe(200);
  });

  test.each<[string, () => string]>([
    ['CH-14 other agent_id', () => edited({ agent_id: sibling.agentId })],
    ['CH-14 the agent_id of its parent', () => edited({ agent_id: parent.agentId })],
    ['CH-14 a later exp', () => edited({ exp: claims().exp + 3600 })],
    ['the claims of its sibling under its signature', () => edited(claims(sibling.bearer))],
    ['signed by a stranger under our kid', () => forged(header())],
    ['a signature of zeros', () => `${child.bearer.split('.').slice(0, 2).join('.')}.${part('\0'.repeat(64))}`],
    ['a signature cut short', () => child.bearer.slice(0, -2)],
    ['claims for another broker', () => edited({ iss: 'https://other.example' })],
    ['no claims', () => child.bearer.replace(/\.[^.]+\./, `.${part('[]')}.`)],
  ])('%s is an invalid signature', async (_what, token) => {
    await refused(token(), 'invalid_signature');
  });

  test.each<[string, () => string]>([
    ['alg none', () => `${part({ ...header(), alg: 'none' })}.${child.bearer.split('.')[1]}.`],
    [
      'HS256 with the published key as secret',
      () => {
        const input = `${part({ ...header(), alg: 'HS256' })}.${part(claims())}`;
        return `${input}.${createHmac('sha256', JSON.stringify(issuing().publicJwk)).update(input).digest('base64url')}`;
      },
    ],
    ['RS256 by the key of its parent', () => signToken(claims(), parent.keys.privateKey, { typ: TYPE })],
    ['another kid', () => forged({ ...header(), kid: stranger.kid })],
    ['no kid', () => forged({ alg: 'ES256', typ: TYPE })],
    ['a key in its header', () => forged({ ...header(), jwk: stranger.publicJwk })],
    ['a jku', () => forged({ ...header(), jku: `http://${world.upstream.address}/jwks` })],
    ['crit', () => forged({ ...header(), crit: ['exp'] })],
    [
      'members in another order than ours',
      () => {
        const { kid } = header();
        return signCompactWith({ typ: TYPE, alg: 'ES256', kid });
      },
    ],
    ['another type by our issuing key', () => signCompact(issuing(), { typ: 'at+jwt' }, claims())],
    ['no type by our issuing key', () => signCompactWith({ alg: 'ES256', kid: issuing().kid })],
    [
      'our evidence key',
      () => signCompact(broker().keys.signer('evidence', broker().clock()), { typ: TYPE }, claims()),
    ],
    ['our session key', () => signCompact(broker().keys.signer('session', broker().clock()), { typ: TYPE }, claims())],
    ['our root key', () => signCompact(broker().keys.signer('root', broker().clock()), { typ: TYPE }, claims())],
    ['for another broker', () => signCompact(issuing(), { typ: TYPE }, { ...claims(), iss: 'https://other.example' })],
    [
      'for another audience',
      () => signCompact(issuing(), { typ: TYPE }, { ...claims(), aud: 'https://other.example' }),
    ],
    ['without jti', () => signCompact(issuing(), { typ: TYPE }, { ...claims(), jti: undefined })],
    ['with a jti that was never issued', () => signCompact(issuing(), { typ: TYPE }, { ...claims(), jti: 'x' })],
    ['for an agent with a key', () => signCompact(issuing(), { typ: TYPE }, { ...claims(), agent_id: parent.agentId })],
    [
      'for an unknown agent',
      () => signCompact(issuing(), { typ: TYPE }, { ...claims(), agent_id: 'agt_00000000000000000000' }),
    ],
    ['an agent_id with U+0000', () => signCompact(issuing(), { typ: TYPE }, { ...claims(), agent_id: 'agt_\0' })],
    ['exp as text', () => signCompact(issuing(), { typ: TYPE }, { ...claims(), exp: 'never' })],
    [
      'exp 1e999',
      () => signCompact(issuing(), { typ: TYPE }, JSON.stringify(claims()).replace(/"exp":\d+/, '"exp":1e999')),
    ],
    [
      'a duplicate claim',
      () => signCompact(issuing(), { typ: TYPE }, JSON.stringify(claims()).replace('{', '{"exp":1,')),
    ],
    ['9,000 characters', () => `${child.bearer}${'x'.repeat(9_000)}`],
    ['an owner session', () => mintOwnerSession(broker(), organisation.owner).token],
    ["JW-24 its parent's JWT with its agent_id", () => parent.token({ agent_id: child.agentId })],
  ])('%s is not a bearer', async (_what, token) => {
    const answer = await withoutCalls(world, () => present(token()));
    expect([answer.status, ['invalid_token', 'invalid_signature'].includes(answer.body.error)], answer.text).toEqual([
      401,
      true,
    ]);
    expect(await strikes()).toEqual([]);
  });

  /** Signs with our own issuing key, under any header. */
  function signCompactWith(head: Record<string, unknown>): string {
    return forged(head, claims(), issuing());
  }

  test('CH-14 its receipt is not accepted as a bearer, and its bearer is neither a receipt nor an owner session', async () => {
    const { receipt } = await evidenceOf(world, child, auditIdOf(await child.act(READ)));
    await refused(receipt, 'invalid_token');
    const asOwner = await parent.get('/owner/agents', { authorization: `Bearer ${child.bearer}` });
    expectEnvelope(asOwner, 401, 'invalid_token');
    const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 });
    await refused(signToken({ ...claims(), owner_id: parent.ownerId }, privateKey), 'invalid_signature');
  });

  test('a cached verification applies to exactly these bytes', async () => {
    expect((await present(child.bearer)).status).toBe(200);
    const last = child.bearer.at(-2)!;
    const other = `${child.bearer.slice(0, -2)}${last === 'A' ? 'B' : 'A'}${child.bearer.at(-1)}`;
    await refused(other, 'invalid_signature');
    expect((await present(child.bearer)).status).toBe(200);
  });

  test('a cached verification ends when the key that signed the token is no longer in the key set', () => {
    const { baseUrl, keys } = broker();
    let set = keys.set('issuing');
    const read = childTokenReader({ baseUrl, keys: { ...keys, set: () => set } });
    expect([read(child.bearer).ok, read(child.bearer).ok]).toEqual([true, true]);
    set = { ...set, verifyKeys: new Map() };
    expect(read(child.bearer)).toMatchObject({ ok: false, refusal: { code: 'invalid_token' } });
  });

  test('strikes count only for holders of the token, and five open the breaker for that address', async () => {
    // A stranger who knows all of its public ids.
    for (let n = 0; n < 6; n++)
      await refused(forged(header(), { ...claims(), jti: `guess-${n}` }), 'invalid_signature');
    expect(await strikes()).toEqual([]);
    expect((await present(child.bearer)).status).toBe(200);
    for (let n = 0; n < 5; n++) await refused(edited({ exp: claims().exp + 1 + n }), 'invalid_signature');
    expect(await strikes()).toMatchObject([{ agent_id: child.id, cause: 'breaker_auth_failure', strikes: 5 }]);
    const { body } = await expectDenied(world, child, READ, 'circuit_breaker_open');
    expect(body.halt).toMatchObject({ cause: 'breaker_auth_failure' });
    expect((await sibling.act(READ)).status).toBe(200);
    expect((await parent.act(READ)).status).toBe(200);
  });

  test('neither the token nor anything from which one could be made is in the store', async () => {
    expect((await child.act(READ)).status).toBe(200);
    const stored = await everythingStored(world.environment);
    for (const secret of [child.bearer, child.bearer.split('.')[2]!, claims().jti])
      expect(placesOf(secret, stored)).toEqual([]);
    expect(placesOf(child.agentId, stored)).not.toEqual([]);
  });

  test('JW-24 a revoked child is reported as halted, unlike an unknown one; after its row is deleted it is a 401', async () => {
    const doomed = await childOf(world, organisation, parent);
    await organisation.ask('POST', `/owner/agents/${doomed.agentId}/revoke`, { reason: 'done' });
    const { body } = await expectDenied(world, doomed, READ, 'agent_revoked');
    expect(body).toMatchObject({ error: 'agent_halted', halt: { state: 'revoked', detail: 'done' } });
    await broker().store.db.updateTable('agents').set({ status: 'deleted' }).where('id', '=', doomed.id).execute();
    await refused(doomed.bearer, 'invalid_token');
  });

  test('an agent with a key cannot pass as a child, and a child’s row cannot have a key', async () => {
    const odd = await organisation.agent({ agent: { agent_type: 'child', parent_id: parent.id } });
    // Such a row is never created; if there were one, it would be refused.
    await expectDenied(world, odd, READ, 'agent_revoked');
  });

  test('a child of one organisation is unknown in another', async () => {
    const other = await world.organisation();
    await other.platform();
    const there = await other.agent();
    const theirs = await childOf(world, other, there);
    expectEnvelope(await theirs.get(`/v1/audit/${auditIdOf(await child.act(READ))}/receipt`), 404, 'not_found');
    expectEnvelope(await other.ask('POST', `/owner/agents/${child.agentId}/revoke`, {}), 404, 'not_found');
    expect((await other.ask('GET', '/owner/agents')).text).not.toContain(child.agentId);
  });
});
