/** Whoever decides on a held call sees what has become of its connection since the call was held. */
import { describe, expect, test } from 'vitest';
import { heldCallLines } from '../../bin/inbox/held-call-lines.ts';
import { expectStatus, send } from '../world/agent.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh, givenWorld, WRITE } from '../world/world.ts';

describe.each(ONE_STORE)(`the note about the connection of a held call on %s${postgresNote}`, (store) => {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());

  const hold = async () => (await expectStatus(202, agent.act(WRITE))).body.approval_id as string;
  const connection = async () => (await organisation.ask('GET', '/owner/connections')).body.connections[0];
  const change = (set: object) =>
    world.running.broker.store.db
      .updateTable('connections')
      .set(set)
      .where('organisation_id', '=', organisation.id)
      .execute();
  /** The note in the console, which is that of the small page and of the command line. */
  const noteOf = async (id: string): Promise<string | null> => {
    const { body: held } = await expectStatus(200, organisation.ask('GET', `/owner/approvals/${id}`));
    const { body: waits } = await expectStatus(200, send(`${world.running.baseUrl}/approve/${id}/request`, {}));
    expect(waits.connection_note).toBe(held.connection_note);
    const lines = heldCallLines(held, 400).map(({ text }) => text);
    if (held.connection_note !== null) expect(lines).toContain(held.connection_note);
    return held.connection_note;
  };
  const failureOf = async (id: string) => {
    await expectStatus(200, organisation.ask('POST', `/owner/approvals/${id}/approve`, {}));
    return (await agent.get(`/v1/approvals/${id}?wait=10`)).body.execution_error;
  };

  test('says that the credential was replaced, and when; nothing of a replacement before the call', async () => {
    const { id: connectionId, label } = await connection();
    const replace = (secret: string) =>
      expectStatus(200, organisation.ask('POST', `/owner/connections/${connectionId}/secret`, { secret }));
    await replace('a-second-secret-0123456789');
    world.clock.skewMs = 1_000;
    const id = await hold();
    expect(await noteOf(id)).toBeNull();
    world.clock.skewMs = 120_000;
    const at = new Date(world.running.broker.clock()).toISOString().slice(0, 13).replace('T', ' ');
    await replace('a-third-secret-0123456789');
    expect(await noteOf(id)).toContain(`The credential of the connection “${label}” was replaced on ${at}`);
    expect(await failureOf(id)).toBeUndefined();
    expect(world.upstream.seen.at(-1)!.headers.authorization).toBe('Bearer a-third-secret-0123456789');
    expect((await organisation.ask('GET', `/owner/approvals/${id}`)).body.connection_note).toBeNull();
  });

  test('says that the call is not made, because the agent has another connection', async () => {
    const id = await hold();
    await change({ is_default: 0, label: 'old' });
    await organisation.connection('demo', { secret: 'another-secret-0123456789' });
    expect(await noteOf(id)).toBe(
      'The agent has another connection now than “old”, for which this call was held: an approved call is not made.',
    );
    expect(await failureOf(id)).toContain('connection_changed');
  });

  test('says that the call is not made, because the connection was removed', async () => {
    const id = await hold();
    const { id: connectionId } = await connection();
    await expectStatus(200, organisation.ask('DELETE', `/owner/connections/${connectionId}`));
    expect(await noteOf(id)).toBe(
      'The connection of this call was removed since it was held: an approved call is not made.',
    );
    expect(await failureOf(id)).toContain('platform_not_connected');
  });

  test('says that the connection is disconnected, or refused by the platform', async () => {
    const id = await hold();
    await change({ status: 'reauth_needed' });
    expect(await noteOf(id)).toContain('The platform refuses the credential of the connection');
    await change({ credential: null });
    expect(await noteOf(id)).toContain('is not connected any more: an approved call is not made');
  });
});
