import { join } from 'node:path';

/** Where a running broker leaves its address and the local credential, for the command line on the same machine. */
export const runFile = (dataFolder: string): string => join(dataFolder, 'run', 'broker.json');
