/** Lists the kinds of channels. Their settings are described in config-file/channels.ts. */
import type { AnyKindName } from '../config-file/channels.ts';
import type { ChannelKind } from './channel.ts';
import { email } from './email.ts';
import { ntfy } from './ntfy.ts';
import { slack } from './slack.ts';
import { teams } from './teams.ts';
import { telegram } from './telegram.ts';
import { webPush } from './web-push.ts';
import { webhook } from './webhook.ts';

const CHANNELS: Readonly<Record<AnyKindName, ChannelKind>> = {
  webhook,
  ntfy,
  email,
  slack,
  teams,
  telegram,
  web_push: webPush,
};

/** Finds the kind that a row names; undefined when it is one of a later release. */
export const kindOf = (name: string): ChannelKind | undefined =>
  Object.hasOwn(CHANNELS, name) ? CHANNELS[name as AnyKindName] : undefined;
