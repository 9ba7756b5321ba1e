/** Runs before each test file is loaded (vitest's setupFiles). */
import { afterAll, beforeEach, expect } from 'vitest';
import { chooseOneStore } from '../stores.ts';
import { cleanUp } from './after-file.ts';
import { repeatSetup } from './repeat-setup.ts';
import { waitLonger } from './test-timeouts.ts';

chooseOneStore(expect.getState().testPath!);
waitLonger();
afterAll(cleanUp);
beforeEach(async ({ task }) => {
  // The first retry goes on with what there is, which a test needs that builds on an earlier one.
  if ((task.result?.retryCount ?? 0) > 1) await repeatSetup(task);
});
