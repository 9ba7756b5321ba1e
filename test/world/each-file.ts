/** Set up for each test file (vitest's setupFiles): what the file made is taken down after it. */
import { afterAll } from 'vitest';
import { cleanUp } from './after-file.ts';
import { waitLonger } from './patience.ts';

waitLonger();
afterAll(cleanUp);
