/** Writes docs/coverage.md: `npx node test/contract/write-coverage.ts`. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { coveragePage } from './coverage.ts';

writeFileSync(join(import.meta.dirname, '..', '..', 'docs', 'coverage.md'), coveragePage());
