/** Answers streamed through the raw entry point, chunk by chunk, and bodies streamed to the platform. */

import { ALLOW_ALL } from '../../world/world.ts';
import type { Invariants } from '../invariants.ts';
import { pause, type Scene, type Work, workers } from '../scene.ts';
import { agentsOf, whenSeen } from './calls.ts';

const PIECES = 8;

export async function streams(scene: Scene, invariants: () => Invariants): Promise<Work> {
  const { world, random, ledger, baseUrl } = scene;
  const agents = await agentsOf(scene, { rules: ALLOW_ALL });
  world.upstream.answer = async (_request, response) => {
    response.on('error', () => {});
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    for (let piece = 0; piece < PIECES && !response.destroyed; piece++) {
      response.write(`data: ${piece}\n\n`);
      await pause(random() * 30);
    }
    response.end();
  };
  const work = workers(6, async (worker, turn) => {
    const item = `s${worker}-${turn}`;
    const isRead = random() < 0.5;
    const agent = agents[worker % agents.length]!;
    const answer = await fetch(`${baseUrl}/proxy/demo-main/items/${item}`, {
      method: isRead ? 'GET' : 'PATCH',
      headers: {
        authorization: `Bearer ${agent.token()}`,
        ...(!isRead && { 'content-type': 'application/json' }),
      },
      ...(!isRead && { body: JSON.stringify({ text: 'x'.repeat(2_000) }) }),
    });
    try {
      const text = await answer.text();
      if (answer.status === 200 && !text.endsWith(`data: ${PIECES - 1}\n\n`))
        throw new Error(`the answer to ${item} was cut off, and looks whole`);
      ledger.find('complete streams');
      invariants().answered(item, { status: answer.status, headers: answer.headers, body: undefined, text });
      return answer.status === 200;
    } catch (error) {
      ledger.find('interrupted streams');
      throw error;
    }
  });
  return {
    ...work,
    moment: whenSeen(scene),
    check: async () => {
      ledger.check('a client gets an error for an interrupted stream');
    },
  };
}
