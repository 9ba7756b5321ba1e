/** Sentences for calls of Gmail and Google Calendar. */

const SENDER = '[, with answers to **{/replyToAddress}**][, sent by the server **{/smtpMsa/host}**]';

/** For a message in base64url, the recipients and the subject are read from its header. */
export const gmailSentences = {
  'POST /gmail/v1/users/*/messages/send': 'send mail[ to **{recipients}**][: *{subject /raw}*]',
  'POST /gmail/v1/users/*/messages/batchModify':
    'label[ {count /ids}] messages[, add **{/addLabelIds/*}**][, remove **{/removeLabelIds/*}**]',
  'POST /gmail/v1/users/*/messages/*/modify':
    'label message **{2}**[, add **{/addLabelIds/*}**][, remove **{/removeLabelIds/*}**]',
  'POST /gmail/v1/users/*/messages/*/trash': 'put message **{2}** into the bin',
  'POST /gmail/v1/users/*/messages/*/untrash': 'take message **{2}** out of the bin',
  'POST /gmail/v1/users/*/threads/*/modify':
    'label thread **{2}**[, add **{/addLabelIds/*}**][, remove **{/removeLabelIds/*}**]',
  'POST /gmail/v1/users/*/threads/*/trash': 'put thread **{2}** into the bin',
  'POST /gmail/v1/users/*/threads/*/untrash': 'take thread **{2}** out of the bin',
  'DELETE /gmail/v1/users/*/messages/*': 'delete message **{2}** permanently',
  'DELETE /gmail/v1/users/*/threads/*': 'delete thread **{2}** permanently',
  'POST /gmail/v1/users/*/messages/batchDelete': 'delete[ {count /ids}] messages permanently',
  'POST /gmail/v1/users/*/messages': 'put a message into the mailbox, without sending it[: *{subject /raw}*]',
  'POST /gmail/v1/users/*/messages/import': 'import a message into the mailbox[: *{subject /raw}*]',
  'POST /gmail/v1/users/*/drafts': 'write a draft[ to **{recipients}**][: *{subject /message/raw}*]',
  'PUT /gmail/v1/users/*/drafts/*': 'replace draft **{2}**[ by one to **{recipients}**][: *{subject /message/raw}*]',
  'DELETE /gmail/v1/users/*/drafts/*': 'delete draft **{2}**',
  'POST /gmail/v1/users/*/drafts/send': 'send the draft[ **{/id}**][ to **{recipients}**][: *{subject /message/raw}*]',
  'POST /gmail/v1/users/*/labels': 'create the label[ **{/name}**]',
  'PUT /gmail/v1/users/*/labels/*': 'change label **{2}**[ to **{/name}**]',
  'PATCH /gmail/v1/users/*/labels/*': 'change label **{2}**[ to **{/name}**]',
  'DELETE /gmail/v1/users/*/labels/*': 'delete label **{2}**',
  'PUT /gmail/v1/users/*/settings/imap': 'change the IMAP settings[, enabled: **{/enabled}**]',
  'PUT /gmail/v1/users/*/settings/language': 'set the language of the mailbox[ to {/displayLanguage}]',
  'PUT /gmail/v1/users/*/settings/pop': 'change the POP settings[, access: **{/accessWindow}**]',
  'PUT /gmail/v1/users/*/settings/vacation':
    'change the automatic reply[, enabled: **{/enableAutoReply}**][: *{/responseSubject}*]',
  'POST /gmail/v1/users/*/settings/filters':
    'create a filter[ for mail from **{/criteria/from}**][, which forwards to **{/action/forward}**]',
  'DELETE /gmail/v1/users/*/settings/filters/*': 'delete filter **{2}**',
  'POST /gmail/v1/users/*/settings/sendAs': `add the sender address[ **{/sendAsEmail}**]${SENDER}`,
  'PUT /gmail/v1/users/*/settings/sendAs/*': `change the sender address **{2}**${SENDER}`,
  'PATCH /gmail/v1/users/*/settings/sendAs/*': `change the sender address **{2}**${SENDER}`,
  'DELETE /gmail/v1/users/*/settings/sendAs/*': 'delete the sender address **{2}**',
  'POST /gmail/v1/users/*/settings/sendAs/*/verify': 'have the sender address **{2}** verified',
  'PUT /gmail/v1/users/*/settings/autoForwarding':
    'change forwarding of all mail[, enabled: **{/enabled}**][, to **{/emailAddress}**]',
  'POST /gmail/v1/users/*/settings/forwardingAddresses': 'add the forwarding address[ **{/forwardingEmail}**]',
  'DELETE /gmail/v1/users/*/settings/forwardingAddresses/*': 'delete the forwarding address **{2}**',
  'POST /gmail/v1/users/*/settings/delegates': 'let[ **{/delegateEmail}**] read and send as this mailbox',
  'DELETE /gmail/v1/users/*/settings/delegates/*': 'no longer let **{2}** read and send as this mailbox',
  'POST /gmail/v1/users/*/watch': 'have news of the mailbox sent[ to **{/topicName}**]',
  'POST /gmail/v1/users/*/stop': 'stop sending news of the mailbox',
};

const WHEN = '[ at {/start/dateTime}| on {/start/date}]';

export const googleCalendarSentences = {
  'POST /calendars/*/events': `create an event in **{1}**${WHEN}[, with **{/attendees/*/email}**][: *{/summary}*]`,
  'POST /calendars/*/events/import': `import an event into **{1}**${WHEN}[: *{/summary}*]`,
  'PUT /calendars/*/events/*': `replace event **{2}** in **{1}**${WHEN}[, status: **{/status}**][, with **{/attendees/*/email}**][: *{/summary}*]`,
  'PATCH /calendars/*/events/*': `change event **{2}** in **{1}**${WHEN}[, status: **{/status}**][, with **{/attendees/*/email}**][: *{/summary}*]`,
  'POST /calendars/*/events/*/move': 'move event **{2}** from **{1}**[ to **{?destination}**]',
  'POST /calendars/*/events/quickAdd': 'create an event in **{1}**[: *{?text}*]',
  'DELETE /calendars/*/events/*': 'delete event **{2}** in **{1}**',
  'POST /freeBusy': 'see when[ **{/items/*/id}**] are busy',
  'POST /calendars': 'create the calendar[ *{/summary}*]',
  'PUT /calendars/*': 'change the calendar **{1}**[ to *{/summary}*]',
  'PATCH /calendars/*': 'change the calendar **{1}**[ to *{/summary}*]',
  'POST /users/me/calendarList': 'add the calendar[ **{/id}**] to the list',
  'PUT /users/me/calendarList/*': 'change how the calendar **{1}** is listed',
  'PATCH /users/me/calendarList/*': 'change how the calendar **{1}** is listed',
  'DELETE /users/me/calendarList/*': 'take the calendar **{1}** off the list',
  'DELETE /calendars/*': 'delete the calendar **{1}**',
  'POST /calendars/*/clear': 'delete all events of the calendar **{1}**',
  'POST /calendars/*/transferOwnership': 'give the calendar **{1}** away[ to **{?newDataOwner}**]',
  'POST /calendars/*/acl':
    'share the calendar **{1}**[ with **{/scope/value}**][ as **{/role}**][, scope: **{/scope/type}** (default is everybody)]',
  'PUT /calendars/*/acl/*': 'change the share {2} of the calendar **{1}**[ to **{/role}**]',
  'PATCH /calendars/*/acl/*': 'change the share {2} of the calendar **{1}**[ to **{/role}**]',
  'DELETE /calendars/*/acl/*': 'take away the share {2} of the calendar **{1}**',
  'POST /calendars/*/events/watch': 'have news of the events of **{1}** sent[ to **{/address}**]',
  'POST /calendars/*/acl/watch': 'have news of the shares of **{1}** sent[ to **{/address}**]',
  'POST /users/me/calendarList/watch': 'have news of the list of calendars sent[ to **{/address}**]',
  'POST /users/me/settings/watch': 'have news of the settings sent[ to **{/address}**]',
  'POST /channels/stop': 'stop sending news[ of {/resourceId}]',
};
