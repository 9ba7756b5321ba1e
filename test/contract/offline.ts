/** Preloaded into tools that could ask somebody for something: from here on nothing leaves this process. */
import { Socket } from 'node:net';

Socket.prototype.connect = () => {
  process.stderr.write('OFFLINE: somebody tried to connect\n');
  process.exit(99);
};
