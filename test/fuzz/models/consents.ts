/**
 * One token per person (specification, "Per-person consent"): a call for a person uses that person's own token or none, never another person's, and
 * only after the person has completed an unexpired consent and an owner has confirmed the account.
 */
import fc from 'fast-check';
import { expect } from 'vitest';
import { expectStatus, type TestAgent } from '../../world/agent.ts';
import { Browser } from '../../world/browser/browser.ts';
import { govern, READ_DOCS } from '../../world/docs-platform.ts';
import { agentOfPeople, consentAsserted, documentOf, statusOf } from '../../world/people.ts';
import { type AuthorizationServer, startAuthorizationServer } from '../../world/servers/authorization-server.ts';
import type { StoreKind } from '../../world/stores.ts';
import { type Organisation, startWorld } from '../../world/world.ts';
import type { Count, Fuzzed } from '../fuzz.ts';
import { type Step, sequences, step } from '../steps.ts';

/** Ids of different people with the smallest possible difference. */
const PEOPLE = ['U-ANN', 'u-ann'];
/** Specification, Limits. */
const CONSENT_LIVES_MS = 30 * 60_000;
/** docs/people.md: a consent with less time left is not offered again. */
const ENOUGH_MS = 20 * 60_000;

type Person = {
  account: string | undefined;
  isConfirmed: boolean;
  consent: { token: string; url: string; endsAt: number; isDone: boolean } | undefined;
};
type Model = { people: Person[]; accounts: number; calls: number };
type Real = { organisation: Organisation; agent: TestAgent };

const callerOf = (which: number) => ({ source: 'slack', id: PEOPLE[which] });

export async function consents(store: StoreKind, count: Count): Promise<Fuzzed> {
  const server: AuthorizationServer = await startAuthorizationServer();
  const world = await startWorld(store, { AGENT_BROKER_ALLOW_PRIVATE: server.address });
  server.serve(world.running.baseUrl);
  const begin = async () => {
    world.clock.skewMs = 0;
    server.served.length = 0;
    const organisation = await world.organisation();
    await expectStatus(200, govern(organisation, documentOf(server, { asserted: ['slack'] })));
    const people = PEOPLE.map((): Person => ({ account: undefined, isConfirmed: false, consent: undefined }));
    return {
      model: { people, accounts: 0, calls: 0 },
      real: { organisation, agent: await agentOfPeople(organisation) },
    };
  };

  const isOpen = ({ consent }: Readonly<Person>, now: number) =>
    consent !== undefined && !consent.isDone && consent.endsAt > now;
  const one = (
    name: string,
    run: (person: Person, which: number, model: Model, real: Real) => Promise<void>,
    when: (person: Readonly<Person>) => boolean = () => true,
  ): fc.Arbitrary<Step<Model, Real>> =>
    fc.nat(PEOPLE.length - 1).map((which) =>
      step(
        `${name} ${PEOPLE[which]}`,
        async (model, real) => await run(model.people[which] as Person, which, model, real),
        (model) => when(model.people[which] as Person),
      ),
    );

  const call = one('call for', async (person, which, model, { agent }) => {
    const answer = await agent.act({ ...READ_DOCS, caller: callerOf(which) });
    if (person.isConfirmed) {
      count('made');
      model.calls++;
      expect(answer.status, answer.text).toBe(200);
      expect(answer.body.data.who).toBe(person.account);
      return;
    }
    count('not consented');
    expect([answer.status, answer.body.error, answer.body.reason], answer.text).toEqual([
      412,
      'consent_required',
      'not_consented',
    ]);
    const { consent_token: token, consent_url: url } = answer.body;
    if (person.account !== undefined) expect(url).toBeUndefined();
    else if (isOpen(person, agent.clock() + ENOUGH_MS)) expect(token).toBe(person.consent?.token);
    else {
      expect(token).not.toBe(person.consent?.token);
      person.consent = { token, url, endsAt: agent.clock() + CONSENT_LIVES_MS, isDone: false };
    }
  });
  const nobody = fc.constantFrom(undefined, { source: 'teams', id: 'U-ANN' }).map((caller) =>
    step<Model, Real>(`call for ${caller ? 'a source that is not taken' : 'nobody'}`, async (_, { agent }) => {
      const answer = await agent.act({ ...READ_DOCS, ...(caller && { caller }) });
      expect([answer.status, answer.body.reason], answer.text).toEqual([
        412,
        caller ? 'asserted_not_allowed' : 'no_caller',
      ]);
    }),
  );
  const consent = one(
    'consent of',
    async (person, _, model, { agent }) => {
      const { url = '' } = person.consent ?? {};
      if (isOpen(person, agent.clock())) {
        const account = `p${model.accounts++}`;
        await expectStatus(200, consentAsserted(server, url, account));
        Object.assign(person, { account, isConfirmed: false });
        if (person.consent) person.consent.isDone = true;
      } else {
        count('expired, or repeated');
        const visit = await new Browser().post(`${url}/start`, {});
        expect(visit.status, visit.text).toBeGreaterThanOrEqual(400);
      }
    },
    (person) => person.consent !== undefined,
  );
  const tokensOf = async ({ organisation }: Real): Promise<{ id: string; state: string; account: string | null }[]> =>
    (await organisation.ask('GET', '/owner/people')).body.tokens;
  const confirm = one(
    'confirm',
    async (person, _which, _model, real) => {
      const found = (await tokensOf(real)).find(({ account }) => account === `${person.account}@docs.example`);
      await expectStatus(200, real.organisation.ask('POST', `/owner/people/tokens/${found?.id}/confirm`, {}));
      person.isConfirmed = true;
    },
    ({ account, isConfirmed }) => account !== undefined && !isConfirmed,
  );
  const end = one('end', async (person, which, _, { organisation }) => {
    const answer = await organisation.ask('POST', '/owner/people/end', { caller: callerOf(which) });
    expect([answer.status, answer.body.ended], answer.text).toEqual([200, person.account === undefined ? 0 : 1]);
    Object.assign(person, { account: undefined, isConfirmed: false });
  });
  const wait = fc.constantFrom(11, 20).map((minutes) =>
    step<Model, Real>(`wait ${minutes} min`, async () => {
      world.clock.skewMs += minutes * 60_000;
    }),
  );

  const property = sequences<Model, Real>([call, call, call, nobody, consent, consent, confirm, confirm, end, wait], {
    begin,
    longest: 18,
    after: async ({ calls }) => expect(server.served.length).toBe(calls),
    end: async ({ people }, real) => {
      for (const { consent: begun } of people) {
        if (begun === undefined) continue;
        const { body, text } = await statusOf(world, begun.token);
        const status = begun.isDone ? 'completed' : begun.endsAt <= real.agent.clock() ? 'expired' : 'pending';
        expect(body.status, text).toBe(status);
      }
      const known = people.filter(({ account }) => account !== undefined);
      const states = known.map(({ isConfirmed }) => (isConfirmed ? 'active' : 'unconfirmed'));
      expect((await tokensOf(real)).map(({ state }) => state).toSorted()).toEqual(states.toSorted());
    },
  });
  return { property, reaches: ['made', 'not consented', 'expired, or repeated'] };
}
