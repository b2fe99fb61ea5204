/**
 * The shapes of what the API answers, for the type checker; no page loads this file.
 *
 * @typedef {"read" | "approve" | "operate"} Scope
 * @typedef {"approve" | "hold" | "release"} Decision
 * @typedef {{name: string, scopes: Scope[], by: string, via: string, expires: string | null}} Caller
 * @typedef {{tokens: boolean, certificates: boolean, votes: boolean}} Access
 * @typedef {{caller: Caller | null, access: Access}} Session
 * @typedef {{what: string, why: string, runbook: string}} Remark
 * @typedef {{ready: boolean, reasons: Remark[], notes: Remark[]}} Readiness
 *
 * @typedef {object} Sink
 * @property {string} name
 * @property {string} type
 * @property {boolean} required
 * @property {"untried" | "connected" | "unavailable" | "stopped"} state
 * @property {string | null} since
 * @property {number} waiting
 * @property {string | null} oldest
 * @property {number} delivered
 * @property {number} dead
 * @property {string | null} error
 *
 * @typedef {object} ApprovalSource
 * @property {string} name
 * @property {string} type
 * @property {"starting" | "connected" | "unavailable"} state
 * @property {string | null} error
 * @property {number} received
 * @property {number | null} heardSecondsAgo
 * @property {number | null} lag
 * @property {boolean} silent
 *
 * @typedef {object} SourceStatus
 * @property {string | null} endpoint
 * @property {"waiting" | "good" | "failing" | "degraded"} state
 * @property {string | null} lastGood
 * @property {number | null} lastGoodAgeSeconds
 * @property {number} polls
 * @property {string | null} problem
 * @property {string | null} detail
 * @property {number | null} httpStatus
 * @property {Record<string, number>} problems
 * @property {number | null} clockSkewSeconds
 * @property {boolean} clockSkewed
 * @property {number} pollIntervalSeconds
 * @property {"own" | "all"} scope
 * @property {string} apiVersion
 *
 * @typedef {object} Reload
 * @property {string} at
 * @property {string} outcome
 * @property {string[]} changed
 * @property {string[]} errors
 * @property {string} by
 * @property {string} via
 *
 * @typedef {object} Configuration
 * @property {string | null} file
 * @property {string} sha256
 * @property {string} loadedAt
 * @property {boolean | null} differs
 * @property {string | null} fileError
 * @property {Reload | null} reload
 * @property {number} reloadsFailed
 *
 * @typedef {object} Policy
 * @property {string} require
 * @property {boolean} dryRun
 * @property {number} holdTimeoutSeconds
 *
 * @typedef {object} Status
 * @property {string} version
 * @property {string} startedAt
 * @property {{name: string | null, location: string | null, resourceId: string | null}} vm
 * @property {Caller} caller
 * @property {Access} access
 * @property {Readiness} readiness
 * @property {SourceStatus} source
 * @property {{path: string, writable: boolean, trouble: string | null, bytes: number, maxBytes: number, lost: number}} journal
 * @property {Sink[]} sinks
 * @property {ApprovalSource[]} approvalSources
 * @property {Policy} approvals
 * @property {{events: number, drills: number}} pending
 * @property {DrillSummary | null} drill
 * @property {Configuration} configuration
 *
 * @typedef {object} Times
 * @property {string | null} announced
 * @property {string | null} granted
 * @property {string | null} started
 * @property {string | null} ended
 * @property {number | null} noticeSeconds
 * @property {number | null} approvalSeconds
 * @property {number | null} durationSeconds
 *
 * @typedef {{approver: string, resource: string | null, reason: string | null, at: string, until: string}} Hold
 *
 * @typedef {object} Approvals
 * @property {string} require
 * @property {boolean} dryRun
 * @property {boolean} satisfied
 * @property {string[]} have
 * @property {string[]} missing
 * @property {Hold[]} holds
 * @property {"due" | "asked" | "granted" | null} grant
 * @property {boolean} local
 *
 * @typedef {object} ScheduledEvent
 * @property {string} eventId
 * @property {string} eventType
 * @property {"Scheduled" | "Started" | "Completed" | "Canceled"} status
 * @property {string[]} resources
 * @property {string | null} notBefore
 * @property {string | null} approveBy
 * @property {string | null} description
 * @property {string | null} eventSource
 * @property {number | null} durationInSeconds
 * @property {string} state
 * @property {number} life
 * @property {boolean} pending
 * @property {boolean | null} affected
 * @property {boolean} inferred
 * @property {boolean} drill
 * @property {string} lastChange
 * @property {Times} times
 * @property {Approvals | null} approvals
 *
 * @typedef {object} Vote
 * @property {string} approvalId
 * @property {string} approver
 * @property {string | null} resource
 * @property {Decision} decision
 * @property {string | null} reason
 * @property {boolean} verified
 * @property {string} via
 * @property {string} at
 * @property {number} life
 *
 * @typedef {object} Refusal
 * @property {string | null} eventId
 * @property {string | null} approver
 * @property {string | null} resource
 * @property {string | null} decision
 * @property {string} reason
 * @property {string | null} detail
 * @property {string} via
 * @property {string} at
 * @property {string} outcome
 * @property {boolean} stray
 *
 * @typedef {{id: string, type: string, time: string, subject: string, source: string, data: Record<string, any>}} CloudEvent
 * @typedef {{sink: string, outcome: string, attempts: number, at: string | null, error: string | null, note: string | null}} Delivery
 * @typedef {{cloudevent: CloudEvent, deliveries: Delivery[]}} Row
 * @typedef {ScheduledEvent & {votes: Vote[], refusals: Refusal[], history: Row[], more: boolean}} EventDetail
 *
 * @typedef {object} DeadLetter
 * @property {string} id
 * @property {string} sink
 * @property {string} type
 * @property {string} subject
 * @property {number} attempts
 * @property {string} lastAttempt
 * @property {string} reason
 *
 * @typedef {{eventId: string, outcome: string, reason: string | null, detail: string | null}} Outcome
 *
 * @typedef {object} DrillSummary
 * @property {string} eventId
 * @property {string} eventType
 * @property {string[]} resources
 * @property {string} status
 * @property {number} noticeSeconds
 * @property {string} begunBy
 * @property {string} via
 * @property {string} begunAt
 * @property {string | null} endedAt
 *
 * @typedef {object} DrillSink
 * @property {string} sink
 * @property {boolean} required
 * @property {string} outcome
 * @property {number | null} seconds
 * @property {boolean} inTime
 * @property {number} attempts
 * @property {string | null} error
 *
 * @typedef {object} DrillReport
 * @property {string} eventId
 * @property {string} eventType
 * @property {string[]} resources
 * @property {string} status
 * @property {number} noticeSeconds
 * @property {string} begunBy
 * @property {string} begunAt
 * @property {string | null} startedAt
 * @property {string | null} endedAt
 * @property {string} notBefore
 * @property {string} approveBy
 * @property {boolean | null} passed
 * @property {string} verdict
 * @property {{wouldBeTold: boolean, at: string | null, secondsBeforeApproveBy: number | null, dryRun: boolean}} azure
 * @property {{policy: string, satisfied: boolean, missing: string[], holds: string[], silent: string[], votes: (Vote & {secondsBeforeApproveBy: number})[], refused: (Refusal & {secondsBeforeApproveBy: number})[]}} approvals
 * @property {DrillSink[]} sinks
 *
 * @typedef {object} Model
 * @property {any} data what the page loaded, or null before the first answer
 * @property {Status | null} status
 * @property {Session} session
 * @property {string[]} params
 *
 * @typedef {object} Page
 * @property {string} name the entry of the navigation that it belongs to
 * @property {string} title
 * @property {() => void} [enter]
 * @property {(params: string[]) => Promise<any>} load
 * @property {(model: Model) => Node} view
 */
export {};
