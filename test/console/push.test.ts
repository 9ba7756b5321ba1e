/** The service worker in real Chromium, by the debugging protocol: the notifications of pushed messages, and turning a device on and off. */
import { setTimeout } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { describeInChromium, startBrowser } from '../world/browser/chromium.ts';
import { isLive, openConsole, says } from '../world/browser/console.ts';
import { startPushService, subscribe } from '../world/servers/push-service.ts';
import { givenWorld, shared, WRITE } from '../world/world.ts';

const HOSTILE = '<img src=x onerror=alert(1)> [Approve](https://evil.example)';

describeInChromium('push in the console', () => {
  const world = givenWorld();
  const service = shared(() => startPushService(world));
  const organisation = shared(() => world.demoOrganisation());
  const agent = shared(() => organisation.agent({ name: HOSTILE }));
  const browser = shared(() => startBrowser({ full: true }));
  const page = shared(() => openConsole(world, browser, organisation.owner));
  const go = async (path: string) => {
    await page.open(world.running.baseUrl + path);
    await isLive(page);
  };
  const allow = async (setting: 'granted' | 'denied') => {
    const { targetInfo } = await page.command('Target.getTargetInfo');
    await page.command('Browser.setPermission', {
      permission: { name: 'notifications' },
      setting,
      origin: world.running.baseUrl,
      browserContextId: targetInfo.browserContextId,
    });
  };
  /** The browser's own push service is unavailable here; this script replaces its API with the push service of this test. */
  const subscribing = (json: object) => `(() => {
      let is = null;
      const made = { ...${JSON.stringify(json)}, options: {}, toJSON: () => (${JSON.stringify(json)}), unsubscribe: async () => { is = null; return true; } };
      PushManager.prototype.subscribe = async (options) => { globalThis.asked = options; is = made; return is; };
      PushManager.prototype.getSubscription = async () => is;
    })()`;
  const shown = () =>
    page.value<{ title: string; body: string; tag: string; silent: boolean; path: string }[]>(
      `navigator.serviceWorker.getRegistration('/console').then((one) => one.getNotifications()).then((all) => all.map(({ title, body, tag, silent, data }) => ({ title, body, tag, silent, path: data.path })))`,
    );

  let found: Promise<string> | undefined;
  /** Returns the browser's registration id of the service worker, once it is active. */
  const registrationId = () => {
    found ??= new Promise<string>((resolve, reject) => {
      page.on('ServiceWorker.workerVersionUpdated', ({ versions }) => {
        const active = versions.find(({ status }: { status: string }) => status === 'activated');
        if (active) resolve(active.registrationId);
      });
      page.command('ServiceWorker.enable').catch(reject);
    });
    return found;
  };
  /** Delivers a push message to the service worker, as the browser does for its push service. */
  const hand = async (data: string) =>
    await page.command('ServiceWorker.deliverPushMessage', {
      origin: world.running.baseUrl,
      registrationId: await registrationId(),
      data,
    });
  /** Pushes up to three times, as a push service retries undelivered messages: a browser on a busy machine once lost one. */
  const until = async (push: () => Promise<unknown>, seen: () => Promise<boolean>) => {
    for (let tries = 0; tries < 3; tries++) {
      await push();
      const end = Date.now() + 8_000;
      while (Date.now() < end) {
        if (await seen()) return;
        await setTimeout(50);
      }
    }
    expect.fail('Nothing of what was pushed is shown.');
  };

  test('a person whose browser blocks notifications reads how to allow them; the permission is requested only after a click', async () => {
    await allow('denied');
    await go('/console/notices');
    await page.until(`document.querySelector('#without-push')?.innerText.includes('Allow them in its settings')`);
    await allow('granted');
    await go('/console/notices');
    await page.until(`document.querySelector('#notify-here') !== null`);
    expect(
      await page.value(`navigator.serviceWorker.getRegistration('/console').then((one) => one === undefined)`),
    ).toBe(true);
  });

  test('one click turns this device on; it is tested, and removed', async () => {
    const phone = subscribe(service);
    await page.value(subscribing(phone.json));
    await page.value(`document.querySelector('#notify-here').focus()`);
    await page.press('Enter');
    await says(page, 'This device gets notices from now on');
    await page.until(`document.querySelector('#devices .badge')?.innerText === 'This device'`);
    const { public_key: key } = (await organisation.ask('GET', '/owner/push-subscriptions')).body;
    expect(await page.value('asked')).toEqual({ userVisibleOnly: true, applicationServerKey: key });
    await page.click('#devices .test');
    await says(page, 'accepted the test notice');
    expect(phone.read((await service.waitFor(1))[0]!.body).title).toBe('Test notice');
    await page.click('#devices .rules');
    await page.click('dialog [data-event="agent_suspended"]');
    await page.click('#do-it');
    await says(page, 'Saved.');
    await page.click('#devices .remove');
    await page.click('#do-it');
    await says(page, 'gets no further notices');
    await page.until(`document.querySelector('#notify-here') !== null`);
    expect((await organisation.ask('GET', '/owner/push-subscriptions')).body.subscriptions).toEqual([]);
  });

  test('a pushed message is shown as text, one notification per call, which the outcome replaces', async () => {
    const phone = subscribe(service);
    await organisation.ask('POST', '/owner/push-subscriptions', { ...phone.json, device_name: 'Phone' });
    service.pushed.length = 0;
    const held = await agent.act({ ...WRITE });
    const id = held.body.approval_id;
    const deliver = async (at: number) =>
      await hand(JSON.stringify(phone.read((await service.waitFor(at + 1))[at]!.body)));
    await until(
      () => deliver(0),
      async () => (await shown()).length === 1,
    );
    const [first] = await shown();
    expect(first).toMatchObject({ title: 'Approval needed', tag: id, path: `/approve/${id}` });
    expect(first!.body).toContain(`Agent: ${HOSTILE}`);
    expect(first!.silent).toBe(false);
    const progress = ['Approved by ann@acme.example; 1 more person has to approve'];
    await until(
      () => hand(JSON.stringify({ tag: id, step: 'update', title: 'Approval needed', path: '/', progress })),
      async () => (await shown())[0]?.body === `${progress[0]}.`,
    );
    expect(await shown()).toMatchObject([{ tag: id, silent: true }]);
    await organisation.deny(id);
    await until(
      () => deliver(1),
      async () => (await shown())[0]?.body.split('\n')[0] === `Denied by ${organisation.owner.email}.`,
    );
    expect(await shown()).toHaveLength(1);
    await until(
      () => hand('no JSON'),
      async () => (await shown()).some(({ title }) => title === 'Agent Broker'),
    );
  });

  /** Runs an expression in the service worker. Returns nothing: tests check the effects. */
  const inWorker = async (expression: string) => {
    // The browser stops an idle service worker after half a minute.
    await page.command('ServiceWorker.startWorker', { scopeURL: `${world.running.baseUrl}/console` });
    const worker = await vi.waitFor(async () => {
      const { targetInfos } = await page.command('Target.getTargets');
      const found = targetInfos.find(
        ({ type, url }: { type: string; url: string }) =>
          type === 'service_worker' && url === `${world.running.baseUrl}/console/worker.js`,
      );
      expect(found).toBeDefined();
      return found;
    }, 10_000);
    const { sessionId } = await page.command('Target.attachToTarget', { targetId: worker.targetId, flatten: false });
    const params = { expression, awaitPromise: true };
    const message = JSON.stringify({ id: 1, method: 'Runtime.evaluate', params });
    await page.command('Target.sendMessageToTarget', { sessionId, message });
  };

  test('a subscription that the browser renewed replaces the old one, and a removed device is not added again', async () => {
    const [old, made] = [subscribe(service), subscribe(service)];
    const { body } = await organisation.ask('POST', '/owner/push-subscriptions', {
      ...old.json,
      device_name: 'Desk',
    });
    const rules = { events: ['agent_suspended'] };
    await organisation.ask('POST', `/owner/push-subscriptions/${body.id}/settings`, rules);
    const changed = (
      from: typeof old,
      to: typeof old,
    ) => `dispatchEvent(Object.assign(new ExtendableEvent('pushsubscriptionchange'), {
        oldSubscription: { endpoint: ${JSON.stringify(from.json.endpoint)} },
        newSubscription: { toJSON: () => (${JSON.stringify(to.json)}) },
      }))`;
    const desks = async () =>
      (await organisation.ask('GET', '/owner/push-subscriptions')).body.subscriptions.filter(
        (one: { device_name: string }) => one.device_name === 'Desk',
      );
    await inWorker(changed(old, made));
    await expect.poll(async () => (await desks()).map((one: { id: string }) => one.id !== body.id)).toEqual([true]);
    const [renewed] = await desks();
    expect(renewed.rules).toEqual(rules);
    await organisation.ask('DELETE', `/owner/push-subscriptions/${renewed.id}`);
    await inWorker(changed(made, old));
    await inWorker(
      `fetch('/owner/push-subscriptions').then(() => registration.showNotification('later', { data: {} }))`,
    );
    await expect.poll(async () => (await shown()).map(({ title }) => title)).toContain('later');
    expect(await desks()).toEqual([]);
  });

  test('a click on a notification opens the inbox in an open console', async () => {
    await page.click('nav a[href="/console/settings"]');
    await page.until(`location.pathname === '/console/settings'`);
    const click = `registration.getNotifications().then(([notification]) => dispatchEvent(new NotificationEvent('notificationclick', { notification })))`;
    await inWorker(click);
    await page.until(`location.pathname === '/console'`);
    expect(await page.value(`caches.keys()`), 'the worker keeps nothing').toEqual([]);
    expect(page.complaints).toEqual([]);
  });
});
