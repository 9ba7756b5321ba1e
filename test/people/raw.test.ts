/** Raw calls for people: a call held for one person is neither joined nor answered by the same request for another. */
import { beforeEach, describe, expect, test } from 'vitest';
import { rawClient } from '../proxy/raw-client.ts';
import { type Answer, expectStatus, type TestAgent } from '../world/agent.ts';
import { docsManifest, govern } from '../world/docs-platform.ts';
import { consentVerified } from '../world/mcp/people.ts';
import { agentOfPeople } from '../world/people.ts';
import { givenPeople, slack } from '../world/people-world.ts';
import { ONE_STORE, postgresNote } from '../world/stores.ts';
import { fresh } from '../world/world.ts';

const ANN = slack('U-ANN');
const HOLD = [{ effect: 'require_approval' }];
const BODY = JSON.stringify({ n: 1 });

describe.each(ONE_STORE)(`raw calls for people on %s${postgresNote}`, (store) => {
  const people = givenPeople(store);
  const { organisation, act, assertion, connected, document, server, world } = people;
  const careful = fresh<TestAgent>(() => agentOfPeople(organisation, HOLD));
  const ask = rawClient(() => careful);

  beforeEach(async () => {
    await connected(ANN, 'ann');
    await consentVerified(people, (await act(await assertion('bob'))).body.consent_url, 'bob');
  });
  const write = (caller: string | undefined): Promise<Answer> =>
    ask('POST', '/proxy/main/items', {
      body: BODY,
      headers: { 'x-svc-wait': '0', ...(caller !== undefined && { 'x-svc-caller': caller }) },
    });
  const bob = async () => `jwt ${(await assertion('bob')).assertion}`;
  const ann = 'id slack:U-ANN';
  const idOf = (answer: Answer): string => {
    expect(answer, answer.text).toMatchObject({ status: 403, body: { error: 'approval_pending' } });
    return answer.body.approval_id;
  };

  test('each person has a held call of their own, and gets the answer obtained with their own token', async () => {
    const first = idOf(await write(ann));
    const second = idOf(await write(await bob()));
    expect(second).not.toBe(first);
    // Each assertion differs, and is about the same person.
    expect([idOf(await write(ann)), idOf(await write(await bob()))]).toEqual([first, second]);
    for (const id of [first, second]) await organisation.approve(id);
    expect(await write(await bob())).toMatchObject({ status: 200, body: { who: 'bob' } });
    expect(await write(ann)).toMatchObject({ status: 200, body: { who: 'ann' } });
  });

  test('the answer to a call is not given once its person has disconnected', async () => {
    const id = idOf(await write(ann));
    await organisation.approve(id);
    await expectStatus(200, organisation.ask('POST', '/owner/people/end', { caller: ANN }));
    const refused = await expectStatus(403, write(ann));
    expect([refused.body.error, refused.body.detail]).toEqual([
      'no_permission_record',
      expect.stringContaining('the person whom the call is for has disconnected. The call was approved and made;'),
    ]);
  });

  test.each([{}, { error_body: { fault: '{code}', text: '{detail}' } }])(
    'a person who has to consent gets the link, also in an error of the platform: %j',
    async (more) => {
      const docs = docsManifest(server, { per_person: { enabled: true, asserted: ['slack'] }, ...more });
      await expectStatus(200, govern(organisation, document({ platforms: { docs } })));
      const { consent_url, poll_url } = (await act(slack('U-EVE'), {}, careful)).body;
      const refused = await expectStatus(412, write('id slack:U-EVE'));
      expect('error_body' in more ? refused.body.text : refused.body.detail).toContain(
        `Give them ${consent_url}, poll ${world.running.baseUrl}${poll_url} with ?wait=50 until it is completed, then try again.`,
      );
    },
  );

  test('an unknown person, and a request without a caller, do not join a call that is held for a person', async () => {
    const id = idOf(await write(ann));
    await organisation.approve(id);
    for (const caller of [undefined, 'jwt a.b.c', 'id slack:U-EVE', 'id teams:U-ANN']) {
      const answer = await write(caller);
      expect(answer, answer.text).toMatchObject({ status: 412, body: { error: 'consent_required' } });
    }
    expect(await write(ann)).toMatchObject({ status: 200, body: { who: 'ann' } });
  });
});
