/** Sealed data about people when the master key is replaced: rewrapped, and not generated again. */
import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { sealedWith } from '../../broker/crypto/seal.ts';
import { listSealed, SEALED } from '../../broker/store/sealed.ts';
import { jsonPost, send } from '../world/agent.ts';
import { Browser } from '../world/browser/browser.ts';
import { confirmAll, outlivePerson, start } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';

const ANN = slack('U-ANN');
const BOB = slack('U-BOB');
const OF_PEOPLE = ['person_keys', 'person_tokens', 'person_consents'];
const [FIRST, SECOND] = [randomBytes(32).toString('base64'), randomBytes(32).toString('base64')];

describe.each(ONE_STORE)(`people and a new master key on %s${postgresNote}`, (store) => {
  const people = givenPeople(store, { environment: { AGENT_BROKER_MASTER_KEY: FIRST } });
  const { server, world, organisation, act, connected, who } = people;

  async function restartWith(key: string, previous?: string): Promise<void> {
    Object.assign(world.environment, { AGENT_BROKER_MASTER_KEY: key });
    delete world.environment.AGENT_BROKER_MASTER_KEY_PREVIOUS;
    if (previous) world.environment.AGENT_BROKER_MASTER_KEY_PREVIOUS = previous;
    await world.restart();
  }
  /** Returns by column the keys under which its values are sealed. */
  async function keysOfPeople(): Promise<Map<string, string[]>> {
    const found = new Map<string, string[]>();
    for (const column of SEALED.filter(({ table }) => OF_PEOPLE.includes(table))) {
      const values = await listSealed(world.db, column, '', 100);
      found.set(`${column.table}.${column.column}`, [...new Set(values.map(({ sealed }) => sealedWith(sealed)))]);
    }
    return found;
  }

  test('people, their tokens and a pending consent stay valid, with the new key only', async () => {
    await connected(ANN, 'ann');
    const [before] = (await organisation.ask('GET', '/owner/people')).body.tokens;
    // Bob is at the platform meanwhile.
    const { consent_url } = (await act(BOB)).body;
    const browser = new Browser();
    const onTheWay = await start(browser, consent_url);
    await restartWith(SECOND, FIRST);
    const { baseUrl, services } = world.running;
    const rotated = await send(
      `${baseUrl}/owner/keys/rotate`,
      jsonPost({ use: 'master' }, { authorization: `Bearer ${services.local.token.reveal()}` }),
    );
    expect(rotated.status, rotated.text).toBe(200);
    await restartWith(SECOND);
    const { id } = world.running.broker.vault.masterKeys().current;
    const all = await keysOfPeople();
    expect([...all.keys()].sort()).toEqual([
      'person_consents.flow',
      'person_keys.hash_key',
      'person_tokens.credential',
      'person_tokens.refresh_token',
    ]);
    expect([...all.values()]).toEqual(Array(4).fill([id]));

    expect(await who(ANN)).toBe('ann');
    await outlivePerson(world, organisation, 'ann@docs.example');
    expect(await who(ANN)).toBe('ann');
    expect((await organisation.ask('GET', '/owner/people')).body.tokens).toEqual([before]);
    const asked = await server.consent(browser, 'bob', onTheWay);
    expect(asked.text).toContain('Use the account bob@docs.example?');
    expect((await browser.post(`${consent_url}/keep`, {})).status).toBe(200);
    await confirmAll(organisation);
    expect([await who(BOB), await who(ANN)]).toEqual(['bob', 'ann']);
  });
});
