/** A platform with tokens per person, and people who consent in their browsers. */
import { expect } from 'vitest';
import { uuidv4 } from '../../broker/crypto/ids.ts';
import { readCredential, writeCredential } from '../../broker/token-source/access-token.ts';
import { expectStatus, send, type TestAgent } from './agent.ts';
import { Browser, type Visit } from './browser/browser.ts';
import { docsManifest } from './docs-platform.ts';
import type { AuthorizationServer } from './servers/authorization-server.ts';
import type { Organisation, World } from './world.ts';

/** Returns a governance file with such a platform. `document`: its other members. */
export const documentOf = (server: AuthorizationServer, perPerson: object, document: object = {}): object => ({
  platforms: { docs: docsManifest(server, { per_person: { enabled: true, ...perPerson } }) },
  connections: { main: { platform: 'docs' } },
  ...document,
});

export const agentOfPeople = async (
  organisation: Organisation,
  rules: object[] = [{ effect: 'allow' }],
): Promise<TestAgent> =>
  organisation.agent({
    policy: await organisation.policy(rules as never),
    grants: { docs: { scopeList: ['docs:read', 'docs:write'] } },
  });

/** Opens a consent's page and presses its first button; returns the address to which the browser is sent. */
export async function start(browser: Browser, consentUrl: string): Promise<string> {
  const visit = await expectStatus(200, browser.post(`${consentUrl}/start`, {}));
  return onward(visit);
}

/** Returns the address to which a page redirects. */
export function onward(visit: Visit): string {
  const [, to = ''] = /http-equiv="refresh" content="0; url=([^"]+)"/.exec(visit.text) ?? [];
  expect(to, visit.text).not.toBe('');
  return to.replaceAll(/&#(\d+);/g, (_, code) => String.fromCodePoint(Number(code)));
}

/** Goes through a consent as somebody at the platform, until the page that asks whether to keep the account. */
export async function authorise(
  server: AuthorizationServer,
  browser: Browser,
  login: string,
  url: string,
): Promise<Visit> {
  return await server.consent(browser, login, url);
}

/** Goes through the whole consent for a person whose identity a source asserts. */
export async function consentAsserted(
  server: AuthorizationServer,
  consentUrl: string,
  login: string,
  browser = new Browser(),
): Promise<Visit> {
  const asked = await authorise(server, browser, login, await start(browser, consentUrl));
  expect(asked.text).toContain(`Use the account ${login}@docs.example?`);
  return await browser.post(`${consentUrl}/keep`, {});
}

export const statusOf = async (world: World, token: string, wait = '') =>
  await send(`${world.running.baseUrl}/v1/consent/caller/status/${token}${wait}`, {});

/** Confirms everything that is pending, as an owner. */
export async function confirmAll(organisation: Organisation): Promise<void> {
  const { body } = await organisation.ask('GET', '/owner/people');
  for (const { id, state } of body.tokens)
    if (state === 'unconfirmed')
      expect((await organisation.ask('POST', `/owner/people/tokens/${id}/confirm`, {})).status).toBe(200);
}

/** Replaces the access token of this account by an expired one, independent of the clock. */
export async function outlivePerson(world: World, organisation: Organisation, account: string): Promise<void> {
  const { store, vault, clock } = world.running.broker;
  const rows = await store.db
    .selectFrom('person_tokens')
    .selectAll()
    .where('organisation_id', '=', organisation.id)
    .execute();
  const row = rows.find(({ oauth }) => oauth?.includes(account));
  if (!row?.credential) throw new Error(`nobody has the account ${account}`);
  const place = { table: 'person_tokens' as const, organisationId: row.organisation_id, rowId: row.id };
  const token = readCredential(vault.open(place, row.credential).toString('utf8'))!;
  const now = clock();
  const over = writeCredential({ ...token, issuedAt: now - 120_000, refreshAt: now - 60_000, expiresAt: now - 1_000 });
  await store.db
    .updateTable('person_tokens')
    .set({ credential: vault.seal(place, over) })
    .where('id', '=', row.id)
    .execute();
}

/** Copies the only tokens of an organisation, for as many other people, given one after the other a second apart. The copies cannot be opened. */
export async function copyTokens(world: World, organisation: Organisation, count: number): Promise<void> {
  const { db } = world.running.broker.store;
  const row = await db
    .selectFrom('person_tokens')
    .selectAll()
    .where('organisation_id', '=', organisation.id)
    .executeTakeFirstOrThrow();
  const people = Array.from({ length: count }, (_, at) => ({
    person: { organisation_id: organisation.id, id: uuidv4(), hash: uuidv4(), created_at: row.created_at },
    created_at: row.created_at + 1_000 * (at + 1),
  }));
  for (let from = 0; from < count; from += 500) {
    const some = people.slice(from, from + 500);
    await db
      .insertInto('persons')
      .values(some.map(({ person }) => person))
      .execute();
    await db
      .insertInto('person_tokens')
      .values(some.map(({ person, created_at }) => ({ ...row, id: uuidv4(), person_id: person.id, created_at })))
      .execute();
  }
}
