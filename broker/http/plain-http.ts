/** Refuses MCP clients over plain http: their codes and tokens would be sent unencrypted. */

import type { Broker } from '../broker.ts';
import { isSecureEnough } from '../oauth-server/metadata.ts';
import { Refusal } from './errors.ts';

const WHY =
  'MCP clients are not accepted over plain http. The operator has to put https in front, and set BASE_URL to it.';

/**
 * Without https there is no authorization server, nor metadata that announces one. @throws Refusal `code`: `forbidden` for operations, `not_found`
 * for metadata
 */
export function refusePlainHttp(broker: Pick<Broker, 'baseUrl'>, code: 'forbidden' | 'not_found' = 'forbidden'): void {
  if (!isSecureEnough(broker)) throw new Refusal(code, WHY);
}
