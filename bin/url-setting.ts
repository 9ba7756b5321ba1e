/** The address of a receiver, which is a setting, and not an option. */
import type { ConnectionOptions } from './connection.ts';
import { WrongUsage } from './failure.ts';

/**
 * Throws WrongUsage where `--url` was given for a kind that needs the setting `url`, which is missing: it was meant for that, and the request,
 * with the owner's session, would go to the receiver.
 */
export function expectUrlSetting(
  kind: string,
  kindsWithUrl: readonly string[],
  settings: Readonly<Record<string, unknown>>,
  { url }: ConnectionOptions,
): void {
  if (url !== undefined && settings.url === undefined && kindsWithUrl.includes(kind))
    throw new WrongUsage(
      `--url is the address of the broker, which gets your owner session. Where the ${kind} is, is a setting: write url=${url}`,
    );
}
