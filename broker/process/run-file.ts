import { join } from 'node:path';

/** Path of the file in which a running broker writes its address and the local credential, for the command line on the same machine. */
export const runFile = (dataFolder: string): string => join(dataFolder, 'run', 'broker.json');
