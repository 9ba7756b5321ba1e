/** Connects a platform as an owner in a browser, and expires a connection's token. */

import { expect } from 'vitest';
import { mintOwnerSession } from '../../../broker/auth/owner-session.ts';
import { sessionCookieName } from '../../../broker/auth/session-cookie.ts';
import type { OwnerTable } from '../../../broker/store/tables/organisations.ts';
import { readCredential, writeCredential } from '../../../broker/token-source/access-token.ts';
import { type Answer, expectStatus, send } from '../agent.ts';
import type { Organisation, World } from '../world.ts';
import { Browser } from './browser.ts';

/** Returns a browser in which an owner is signed in. */
export function browserOf(world: World, owner: OwnerTable): Browser {
  const browser = new Browser();
  const { token } = mintOwnerSession(world.running.broker, owner);
  const host = new URL(world.running.baseUrl).hostname;
  browser.cookies.push({ name: sessionCookieName(world.running.baseUrl), value: token, host, path: '/' });
  return browser;
}

/** Presses Connect. Returns the answer that the browser gets. */
export async function pressConnect(world: World, browser: Browser, connection: string): Promise<Answer> {
  const url = `${world.running.baseUrl}/owner/connections/${connection}/oauth/start`;
  return await send(url, { method: 'POST', headers: { cookie: browser.cookieFor(url), 'x-svc-csrf': '1' } });
}

/** Connects at a server that consents immediately. */
export async function connectAtOnce(world: World, owner: OwnerTable, connection: string): Promise<void> {
  const browser = browserOf(world, owner);
  const begun = await expectStatus(200, pressConnect(world, browser, connection));
  const visit = await browser.get(begun.body.authorization_url);
  expect([visit.status, visit.text.includes('The platform is connected.')], visit.text).toEqual([200, true]);
}

/**
 * Replaces the access token of a connection by one that expired a minute ago, independent of the clock; with `leftMs` by one that is valid for this
 * time, and due to be refreshed.
 */
export async function outlive(world: World, connection: string, leftMs = -60_000): Promise<void> {
  const { store, vault, clock } = world.running.broker;
  const row = await store.db
    .selectFrom('connections')
    .selectAll()
    .where('id', '=', connection)
    .executeTakeFirstOrThrow();
  const place = { table: 'connections' as const, organisationId: row.organisation_id, rowId: row.id };
  const credential = readCredential(vault.open(place, row.credential!).toString('utf8'))!;
  const now = clock();
  const sealed = vault.seal(
    place,
    writeCredential({ ...credential, issuedAt: now - 120_000, refreshAt: now - 60_000, expiresAt: now + leftMs }),
  );
  await store.db.updateTable('connections').set({ credential: sealed }).where('id', '=', connection).execute();
}

/** Returns whether each connection of an organisation needs attention, as the store holds it for notices. */
export async function attentionOf(world: World, organisation: Organisation): Promise<number[]> {
  const rows = await world.db
    .selectFrom('connections')
    .select('attention')
    .where('organisation_id', '=', organisation.id)
    .execute();
  return rows.map((one) => one.attention);
}
