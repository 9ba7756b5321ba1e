/** Generates tool-schemas.json, after a change of a tool's schemas: `node mcp/tools/write-tool-schemas.ts && npm run format`. */
import { writeFileSync } from 'node:fs';
import { toolSchemas } from './tool-schemas.ts';

writeFileSync(new URL('tool-schemas.json', import.meta.url), `${JSON.stringify(toolSchemas(), null, 2)}\n`);
