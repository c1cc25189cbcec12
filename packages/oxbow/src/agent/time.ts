import { tool } from '@oxbow/core'

export const currentTimeTool = tool({
  name: 'get_current_time',
  description:
    'Tells the current date, weekday and time, in a time zone if one is given (an IANA name such as Asia/Shanghai).',
  effects: ['read'],
  input: {
    type: 'object',
    properties: {
      timeZone: { type: 'string', description: 'IANA time zone, for example Europe/Berlin. Default: UTC.' },
    },
    additionalProperties: false,
  },
  run({ timeZone }) {
    const zone = timeZone === undefined ? 'UTC' : String(timeZone)
    return describeTime(new Date(), zone)
  },
})

/** @throws Error for a time zone that does not exist */
export function describeTime(now: Date, zone: string): string {
  try {
    const text = new Intl.DateTimeFormat('en-GB', {
      timeZone: zone,
      weekday: 'long',
      year: 'numeric',
      month: 'long',
      day: 'numeric',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
      timeZoneName: 'longOffset',
    }).format(now)
    return `${text} (${zone})`
  } catch (cause) {
    throw new Error(`${JSON.stringify(zone)} is no time zone; use an IANA name such as Asia/Shanghai or UTC`, { cause })
  }
}
