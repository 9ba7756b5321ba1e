/** A scripted week: hundreds of realistic calls, and an owner who makes a standing approval for each wherever that is offered. */
import { expect, test } from 'vitest';
import { BUILTIN_PLATFORMS } from '../../broker/platforms/builtin.ts';
import { makeRandom } from '../world/random.ts';
import { sized } from '../world/runner/thorough.ts';
import { fresh, givenWorld } from '../world/world.ts';

const CALLS = sized(200, 400);
const SEED = Number(process.env.WEEK_SEED ?? 20261122);

type Data = Record<string, string | number>;
type Call = { endpoint: string; scope: string; data: Data };
/** The terms as the owner read them, evaluated by the test itself: everything is equal except the selected members. */
type Said = { call: Call; anything: string[]; atMost: Record<string, number> };

const world = givenWorld();
const organisation = fresh(() =>
  world.demoOrganisation({
    manifest: {
      scopes: {
        'demo:chat': ['POST /chat.postMessage'],
        'demo:issues': ['POST /repos/*/*/issues', 'POST /repos/*/*/issues/*/comments'],
        'demo:refunds': ['POST /v1/refunds'],
        'demo:labels': ['POST /repos/*/*/issues/*/labels'],
      },
      free: { ...BUILTIN_PLATFORMS.slack.free, ...BUILTIN_PLATFORMS.github.free, ...BUILTIN_PLATFORMS.stripe.free },
    },
  }),
);

test(`of ${CALLS} calls in a week at most a fifth needs a decision, and each that passes matches its terms`, async () => {
  const random = makeRandom(SEED);
  const below = (most: number) => Math.floor(random() * most);
  const words = () =>
    Array.from({ length: 4 + below(12) }, () => Math.floor(random() * 36 ** 6).toString(36)).join(' ');
  const draw = (): Call => {
    const kind = random();
    if (kind < 0.55)
      return { endpoint: '/chat.postMessage', scope: 'demo:chat', data: { channel: `C${below(5)}`, text: words() } };
    if (kind < 0.8)
      return {
        endpoint: `/repos/acme/site/issues/${1 + below(9)}/comments`,
        scope: 'demo:issues',
        data: { body: words() },
      };
    if (kind < 0.9)
      return {
        endpoint: `/repos/acme/${['site', 'api'][below(2)]}/issues`,
        scope: 'demo:issues',
        data: { title: words(), body: words() },
      };
    if (kind < 0.95)
      return {
        endpoint: '/v1/refunds',
        scope: 'demo:refunds',
        data: { charge: `ch_${below(40)}`, amount: 100 + below(900) },
      };
    return {
      endpoint: `/repos/acme/site/issues/${1 + below(9)}/labels`,
      scope: 'demo:labels',
      data: { label: ['bug', 'later'][below(2)] as string },
    };
  };
  const scopeList = ['demo:chat', 'demo:issues', 'demo:refunds', 'demo:labels'];
  const agent = await organisation.agent({ grants: { demo: { scopeList } } });
  const said = new Map<string, Said>();
  let prompts = 0;
  let passed = 0;
  for (let i = 0; i < CALLS; i++) {
    world.clock.skewMs = Math.floor((i / CALLS) * 6.9 * 86_400_000);
    const call = draw();
    const answer = await agent.act({ platform: 'demo', method: 'POST', ...call });
    if (answer.status === 200) {
      const { id } = answer.body._meta.standing_approval;
      expect(within(said.get(id)!, call), JSON.stringify({ call, said: said.get(id) })).toBe(true);
      passed++;
      continue;
    }
    expect(answer.status, answer.text).toBe(202);
    prompts++;
    const path = `/owner/approvals/${answer.body.approval_id}`;
    const { standing } = (await organisation.ask('GET', path)).body;
    const free = standing.members.map(({ member }: { member: string }) => ({ member }));
    const decided = await organisation.ask('POST', `${path}/approve`, {
      standing: { count: 100, for_seconds: 7 * 86_400, free },
    });
    expect(decided.status, decided.text).toBe(200);
    const numbers = standing.members.filter((one: { at_most: number | null }) => one.at_most !== null);
    said.set(decided.body.standing_approval, {
      call,
      anything: standing.members.flatMap((one: { member: string; at_most: number | null }) =>
        one.at_most === null ? one.member.slice(1) : [],
      ),
      atMost: Object.fromEntries(
        numbers.map((one: { member: string; at_most: number }) => [one.member.slice(1), one.at_most]),
      ),
    });
  }
  console.info(
    `prompts: ${prompts} of ${CALLS} (${Math.round((1 - prompts / CALLS) * 1000) / 10} % fewer), seed ${SEED}`,
  );
  expect(prompts + passed).toBe(CALLS);
  expect(prompts).toBeLessThanOrEqual(CALLS / 5);
}, 360_000);

function within({ call, anything, atMost }: Said, other: Call): boolean {
  if (call.endpoint !== other.endpoint || call.scope !== other.scope) return false;
  const names = Object.keys(call.data).sort();
  if (JSON.stringify(names) !== JSON.stringify(Object.keys(other.data).sort())) return false;
  return names.every((name) => {
    const [before, now] = [call.data[name], other.data[name]];
    if (anything.includes(name)) return typeof before === typeof now;
    const most = atMost[name];
    return most === undefined ? before === now : typeof now === 'number' && now > 0 && now <= most;
  });
}
