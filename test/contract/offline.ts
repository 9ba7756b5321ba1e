/** Preloaded into third-party tools: blocks all network access of the process. */
import { Socket } from 'node:net';

Socket.prototype.connect = () => {
  process.stderr.write('OFFLINE: somebody tried to connect\n');
  process.exit(99);
};
