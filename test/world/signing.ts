/** Held calls, the owners who may decide them by passkey, and the checks after a refusal. */
import { expect } from 'vitest';
import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import { type Answer, expectStatus, type TestAgent } from './agent.ts';
import { expectEnvelope, withoutCalls } from './evidence.ts';
import { Authenticator } from './software-authenticator.ts';
import type { StoreKind } from './stores.ts';
import { fresh, givenWorld, WRITE } from './world.ts';

/** A held call whose body, query and reason must not be revealed to people who may only sign. */
export const HELD = { ...WRITE, endpoint: '/items?notify=1', data: { title: 'do not tell' }, reason: 'because' };

/** An organisation with an agent, created for each test. To be called where tests are declared. */
export function givenSigning(store: StoreKind) {
  const world = givenWorld(store);
  const organisation = fresh(() => world.demoOrganisation());
  const agent = fresh(() => organisation.agent());
  const heldCall = async (id: string) => (await organisation.ask('GET', `/owner/approvals/${id}`)).body;
  return {
    world,
    organisation,
    agent,
    heldCall,
    db: () => world.db,
    made: (options: { algorithm?: 'ES256' | 'RS256' | 'Ed25519'; synced?: boolean } = {}) =>
      new Authenticator(world.running.baseUrl, options),
    /** Makes a call that is held. Returns the id of its approval. */
    hold: async (by: TestAgent = agent): Promise<string> => {
      const answer = await expectStatus(
        202,
        withoutCalls(world, () => by.act(HELD)),
      );
      return answer.body.approval_id;
    },
    own: async (by?: OwnerTable) => (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys,
    events: async (reason: string) =>
      (await organisation.ask('GET', '/owner/audit?limit=200')).body.rows.filter(
        (row: { reason: string }) => row.reason === reason,
      ),
    /** Expects a refusal: nothing decided, nothing sent. */
    refused: async (id: string, ask: () => Promise<Answer>, status: number, code: string): Promise<Answer> => {
      const before = (await heldCall(id)).status;
      const answer = await withoutCalls(world, ask);
      expectEnvelope(answer, status, code);
      expect((await heldCall(id)).status).toBe(before);
      return answer;
    },
  };
}
