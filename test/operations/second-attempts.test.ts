/** Retries of a test that failed: what the last one begins with, and how they are reported at the end of a run. */
import { beforeAll, describe, expect, test } from 'vitest';
import { repeatSetup } from '../world/runner/repeat-setup.ts';
import { secondAttemptsIn } from '../world/runner/second-attempts.ts';
import { shared } from '../world/world.ts';

const passed = { state: 'passed', messages: [] };
const failed = (...messages: string[]) => ({ state: 'failed', messages });

test('tests that passed at a retry are listed with the failure of the first, others are not', () => {
  const file = 'test/calls/actions.200.test.ts';
  const lines = secondAttemptsIn([
    { file, fullName: 'at once', state: 'passed', attempts: [passed] },
    {
      file,
      fullName: 'calls > late',
      state: 'passed',
      attempts: [failed('expected 401 to be 200\n\n- 401\n+ 200'), passed],
    },
    {
      file,
      fullName: 'a property',
      state: 'passed',
      attempts: [failed('Property failed\n{ seed: 1 }\n\nHint'), passed],
    },
    { file, fullName: 'never', state: 'failed', attempts: [failed('no'), failed('no')] },
    { file, fullName: 'not run', state: 'skipped', attempts: [] },
    { file, fullName: 'without a word', state: 'passed', attempts: [failed(), passed] },
  ]);
  expect(lines).toEqual([
    `${file} > calls > late: expected 401 to be 200`,
    `${file} > a property: Property failed { seed: 1 }`,
    `${file} > without a word: `,
  ]);
});

describe('what the last attempt begins with', () => {
  const calls: string[] = [];
  const organisation = shared(() => ({ agents: [] as string[] }));
  beforeAll(() => void calls.push('outer'));
  describe('in a suite of its own', () => {
    beforeAll(() => void calls.push(`inner, with ${organisation.agents.length} agents`));
    test('the hooks before all tests run again, those of outer suites first, so that nothing of earlier attempts is left', async ({
      task,
    }) => {
      organisation.agents.push('triage');
      await repeatSetup(task);
      expect(organisation.agents).toEqual([]);
      expect(calls).toEqual(['outer', 'inner, with 0 agents', 'outer', 'inner, with 0 agents']);
    });
  });

  describe('with a hook that can run only once', () => {
    let runs = 0;
    beforeAll(() => {
      if (runs++ > 0) throw new Error('EEXIST');
    });
    const later = shared(() => ({ made: calls.push('later') }));
    test('the attempt begins with what there is', async ({ task }) => {
      const { made } = later;
      await repeatSetup(task);
      expect(later.made).toBe(made);
      expect(calls.slice(made)).toEqual(['outer']);
    });
  });
});
