/** Runs before each test file is loaded (vitest's setupFiles). */
import { afterAll, beforeEach, expect } from 'vitest';
import { cleanUp } from './after-file.ts';
import { repeatSetup } from './repeat-setup.ts';
import { chooseOneStore } from './stores.ts';
import { waitLonger } from './test-timeouts.ts';

chooseOneStore(expect.getState().testPath!);
waitLonger();
afterAll(cleanUp);
beforeEach(async ({ task }) => {
  if (task.result?.retryCount) await repeatSetup(task);
});
