import type { IncomingMessage, ServerResponse } from 'node:http';
import { Controller, Inject, Post, Req, Res } from '@nestjs/common';
import { quittanceWebhook } from '@quittance/sdk/express';
import { Logger } from '@vendure/core';
import { loggerCtx, QUITTANCE_OPTIONS, type QuittanceOptions } from './options';
import { QuittanceService } from './quittance.service';

export const WEBHOOK_ROUTE = 'quittance';
/** No event is larger; the SDK refuses more. */
const MAX_BYTES = 64 * 1024;

type RawRequest = IncomingMessage & { body?: unknown };

/** Keeps the bytes as they came: Vendure's own parser would hand on what it made of them, which no signature fits. */
export function keepRawBody(request: RawRequest, response: ServerResponse, next: () => void): void {
  const chunks: Buffer[] = [];
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= MAX_BYTES) chunks.push(chunk);
  });
  request.on('end', () => {
    if (size > MAX_BYTES) {
      response.writeHead(413).end();
      return;
    }
    request.body = Buffer.concat(chunks);
    next();
  });
}

@Controller(WEBHOOK_ROUTE)
export class WebhookController {
  @Inject(QUITTANCE_OPTIONS) private readonly options!: QuittanceOptions;
  @Inject(QuittanceService) private readonly service!: QuittanceService;

  @Post('webhook')
  async receive(@Req() request: RawRequest, @Res() response: ServerResponse): Promise<void> {
    const { webhookSecrets, projectId } = this.options;
    const onError = (error: unknown) =>
      Logger.error(error instanceof Error ? (error.stack ?? error.message) : String(error), loggerCtx);
    const handle = quittanceWebhook<RawRequest>({ secret: [...webhookSecrets], projectId, onError }, (event) =>
      this.service.handle(event),
    );
    await handle(request, response);
  }
}
