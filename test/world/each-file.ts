/** Runs for each test file (vitest's setupFiles): cleans up after it. */
import { afterAll } from 'vitest';
import { cleanUp } from './after-file.ts';
import { waitLonger } from './test-timeouts.ts';

waitLonger();
afterAll(cleanUp);
