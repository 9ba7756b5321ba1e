/** The routes that the notices page calls, by method and path; see answers.ts. */
import type {
  addChannel,
  changeChannel,
  ownerChannels,
  removeChannel,
  tryChannel,
} from '../http/routes/owner/channels.ts';
import type { channelKinds, ownerReach } from '../http/routes/owner/notices.ts';
import type {
  addPushDevice,
  changePushDevice,
  pushDevices,
  removePushDevice,
  tryPushDevice,
} from '../http/routes/owner/push-subscriptions.ts';

export type NoticeRoutes = {
  'GET /owner/channels': typeof ownerChannels;
  'POST /owner/channels': typeof addChannel;
  'DELETE /owner/channels/{id}': typeof removeChannel;
  'POST /owner/channels/{id}/settings': typeof changeChannel;
  'POST /owner/channels/{id}/test': typeof tryChannel;
  'GET /owner/channel-kinds': typeof channelKinds;
  'GET /owner/reach': typeof ownerReach;
  'GET /owner/push-subscriptions': typeof pushDevices;
  'POST /owner/push-subscriptions': typeof addPushDevice;
  'DELETE /owner/push-subscriptions/{id}': typeof removePushDevice;
  'POST /owner/push-subscriptions/{id}/settings': typeof changePushDevice;
  'POST /owner/push-subscriptions/{id}/test': typeof tryPushDevice;
};
