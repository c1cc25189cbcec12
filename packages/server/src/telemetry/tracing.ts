// OpenTelemetry traces: a span for each turn, with spans for its model calls and tool calls. Spans have names, usage
// and outcomes only: no arguments, outputs, prompts or answers. The library is loaded only if tracing is configured.

import { setTimeout as delay } from 'node:timers/promises'
import type { Attributes, Span } from '@opentelemetry/api'
import type { Middleware, TurnContext } from '@oxbow/core'
import { optionalPackage } from '@oxbow/core/internal'

export interface TracingConfig {
  /** The base address of a collector that speaks OTLP over HTTP, such as http://127.0.0.1:4318. */
  readonly endpoint: string
}

export interface Tracing {
  /** Put it first on each agent. */
  readonly middleware: Middleware
  /**
   * Runs the work of a request below the span of its caller.
   *
   * @param traceparent the header of W3C Trace Context; an invalid one is ignored
   */
  continued<T>(traceparent: string | undefined, work: () => T): T
  /** Sends the remaining spans. */
  close(): Promise<void>
}

const CLOSE_MS = 2_000
const TRACEPARENT = /^00-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})$/
/** Statuses of calls that failed or have an unknown outcome. */
const FAILED: ReadonlySet<string> = new Set(['error', 'denied', 'timed_out', 'cancelled', 'unknown'])

const typeOf = (error: unknown): string => {
  const code = (error as { code?: unknown } | null)?.code
  return typeof code === 'string' ? code : 'error'
}
/** Model ids have the form `provider:name`. */
const providerOf = (model: string): string => model.split(':', 1)[0]!
const nameOf = (model: string): string => model.slice(model.indexOf(':') + 1)
const PACKAGES = ['api', 'sdk-trace', 'exporter-trace-otlp-http', 'resources', 'context-async-hooks']
  .map((it) => `@opentelemetry/${it}`)
  .join(' ')

/**
 * Sends traces to `endpoint`/v1/traces in batches. An unreachable collector loses traces and affects nothing else. The
 * standard variables OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES and OTEL_EXPORTER_OTLP_HEADERS apply. Attribute names
 * follow the semantic conventions for generative AI.
 *
 * @throws OxbowError `package_missing` when the OpenTelemetry packages are not installed
 */
export async function createTracing({ endpoint }: TracingConfig): Promise<Tracing> {
  const [
    { context, SpanKind, SpanStatusCode, trace },
    { BatchSpanProcessor, TracerProvider },
    { OTLPTraceExporter },
    { defaultResource, detectResources, envDetector, resourceFromAttributes },
    { AsyncLocalStorageContextManager },
  ] = await optionalPackage(
    () =>
      Promise.all([
        import('@opentelemetry/api'),
        import('@opentelemetry/sdk-trace'),
        import('@opentelemetry/exporter-trace-otlp-http'),
        import('@opentelemetry/resources'),
        import('@opentelemetry/context-async-hooks'),
      ]),
    'Tracing (telemetry.endpoint)',
    PACKAGES,
  )
  // Spans of instrumented clients inside a tool become children of the tool's span.
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable())
  const exporter = new OTLPTraceExporter({ url: `${endpoint.replace(/\/+$/, '')}/v1/traces` })
  const provider = new TracerProvider({
    resource: defaultResource()
      .merge(resourceFromAttributes({ 'service.name': 'oxbow' }))
      .merge(detectResources({ detectors: [envDetector] })),
    spanProcessors: [new BatchSpanProcessor({ exporter })],
  })
  const tracer = provider.getTracer('oxbow')

  /**
   * Runs `work` in its own span. `outcome` returns the span's attributes, and `error.type` for a failure without an
   * exception.
   */
  async function traced<T>(
    name: string,
    kind: (typeof SpanKind)[keyof typeof SpanKind],
    attributes: Attributes,
    work: () => Promise<T>,
    outcome: (result: T) => Attributes,
  ): Promise<T> {
    const span: Span = tracer.startSpan(name, { kind, attributes })
    try {
      const result = await context.with(trace.setSpan(context.active(), span), work)
      const spanAttributes = outcome(result)
      span.setAttributes(spanAttributes)
      if (spanAttributes['error.type'] !== undefined) span.setStatus({ code: SpanStatusCode.ERROR })
      return result
    } catch (error) {
      // An error message may quote a provider, which may quote the conversation.
      span.setStatus({ code: SpanStatusCode.ERROR })
      span.setAttribute('error.type', typeOf(error))
      throw error
    } finally {
      span.end()
    }
  }
  const of = ({ session, turnId, agent }: TurnContext): Attributes => ({
    'gen_ai.agent.name': agent,
    'gen_ai.conversation.id': [session.tenant, session.user, session.session].join('/'),
    'oxbow.turn.id': turnId,
  })

  /** The error of the last model call of each turn. */
  const failures = new Map<string, string>()
  const turnName = ({ session, turnId }: TurnContext): string => JSON.stringify([session, turnId])
  const howTurnEnded = (turn: TurnContext): Attributes => {
    const failed = failures.get(turnName(turn))
    failures.delete(turnName(turn))
    if (failed !== undefined) return { 'error.type': failed }
    return turn.signal.aborted ? { 'error.type': 'cancelled' } : {}
  }

  return {
    continued(traceparent, work) {
      const [, traceId, spanId, flags] = TRACEPARENT.exec(traceparent ?? '') ?? []
      if (traceId === undefined || spanId === undefined) return work()
      const caller = { traceId, spanId, traceFlags: Number.parseInt(flags!, 16), isRemote: true }
      return context.with(trace.setSpanContext(context.active(), caller), work)
    },
    middleware: {
      name: 'tracing',
      onAgent: (it, next) =>
        traced(
          `invoke_agent ${it.agent}`,
          SpanKind.INTERNAL,
          { ...of(it), 'gen_ai.operation.name': 'invoke_agent' },
          next,
          () => howTurnEnded(it),
        ),
      onModelCall: (request, it, next) =>
        traced(
          `chat ${nameOf(it.model)}`,
          SpanKind.CLIENT,
          {
            ...of(it),
            'gen_ai.operation.name': 'chat',
            'gen_ai.provider.name': providerOf(it.model),
            'gen_ai.request.model': nameOf(it.model),
            'oxbow.step': it.step,
            ...(it.summaryBy !== undefined && { 'oxbow.summary': true }),
          },
          async () => {
            try {
              const reply = await next(request)
              failures.delete(turnName(it))
              return reply
            } catch (error) {
              failures.set(turnName(it), typeOf(error))
              throw error
            }
          },
          ({ model, finishReason, usage }) => ({
            'gen_ai.response.model': model,
            'gen_ai.response.finish_reasons': [finishReason],
            'gen_ai.usage.input_tokens': usage.inputTokens + usage.cacheReadTokens + usage.cacheWriteTokens,
            'gen_ai.usage.output_tokens': usage.outputTokens,
            'gen_ai.usage.cache_read.input_tokens': usage.cacheReadTokens,
            'gen_ai.usage.cache_creation.input_tokens': usage.cacheWriteTokens,
            'gen_ai.usage.reasoning.output_tokens': usage.reasoningTokens,
          }),
        ),
      onActing: (it, next) =>
        traced(
          // Names that the model invents would create unlimited span names.
          `execute_tool ${it.tool?.name ?? 'unknown'}`,
          SpanKind.INTERNAL,
          {
            ...of(it),
            'gen_ai.operation.name': 'execute_tool',
            'gen_ai.tool.name': it.tool?.name ?? 'unknown',
            'gen_ai.tool.call.id': it.call.callId,
          },
          next,
          (outcome) => ({
            'oxbow.status': outcome.status,
            ...(FAILED.has(outcome.status) && {
              'error.type': ('error' in outcome ? outcome.error?.code : undefined) ?? outcome.status,
            }),
          }),
        ),
    },
    // The exporter retries an unreachable collector for longer than a shutdown should take.
    close: () => Promise.race([provider.shutdown().catch(() => {}), delay(CLOSE_MS, undefined, { ref: false })]),
  }
}
