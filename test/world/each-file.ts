/** Runs before each test file is loaded (vitest's setupFiles). */
import { afterAll, expect } from 'vitest';
import { cleanUp } from './after-file.ts';
import { chooseOneStore } from './stores.ts';
import { waitLonger } from './test-timeouts.ts';

chooseOneStore(expect.getState().testPath!);
waitLonger();
afterAll(cleanUp);
