/** MCP clients and plain http: their codes and tokens would travel in the clear. */

import type { Broker } from '../broker.ts';
import { isSecureEnough } from '../oauth-server/metadata.ts';
import { Refusal } from './errors.ts';

const WHY =
  'MCP clients are not accepted over plain http. The operator has to put https in front, and set BASE_URL to it.';

/**
 * Where codes and tokens would travel in the clear there is no authorization server, and nothing that says there is one.
 * @throws Refusal `code`: `forbidden` at what would be done, `not_found` at what would be read of it
 */
export function refusePlainHttp(broker: Pick<Broker, 'baseUrl'>, code: 'forbidden' | 'not_found' = 'forbidden'): void {
  if (!isSecureEnough(broker)) throw new Refusal(code, WHY);
}
