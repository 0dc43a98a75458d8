//! A push, as the OpenAPI document describes it. What is read stands in `content::push`.

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// `title`, `body` or `data` at least, or a platform's own part. Becomes APNs' `aps`, FCM's message, and for web
/// push the JSON that the service worker gets. A delivery's own `belfry` (`id`, and `seen` for
/// `POST /v1/deliveries/{id}/seen`) is added; for FCM as `belfry_id` and `belfry_seen` of the data. All of it
/// together has at most 4096 bytes for APNs and FCM (VoIP 5120) and 3993 for web push.
#[derive(ToSchema)]
pub struct Push {
    #[schema(min_length = 1, max_length = 1000, nullable = false, required = false)]
    pub title: Option<String>,
    /// APNs only.
    #[schema(min_length = 1, max_length = 1000, nullable = false, required = false)]
    pub subtitle: Option<String>,
    #[schema(min_length = 1, max_length = 4000, nullable = false, required = false)]
    pub body: Option<String>,
    /// A key of the app's own translations, in place of `title`.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub title_key: Option<String>,
    #[schema(max_items = 20, nullable = false, required = false)]
    pub title_args: Option<Vec<String>>,
    /// The same for `body`.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub body_key: Option<String>,
    #[schema(max_items = 20, nullable = false, required = false)]
    pub body_args: Option<Vec<String>>,
    /// The number that the badge then shows, never a difference.
    #[schema(minimum = 0, maximum = 1000000, nullable = false, required = false)]
    pub badge: Option<i64>,
    /// A sound of the app's, or `default`.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub sound: Option<String>,
    /// Where a tap leads.
    #[schema(min_length = 1, max_length = 2048, nullable = false, required = false)]
    pub link: Option<String>,
    #[schema(min_length = 1, max_length = 2048, nullable = false, required = false)]
    pub image: Option<String>,
    /// APNs: which of the app's own sets of actions.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub category: Option<String>,
    /// APNs: what is shown as one group.
    #[schema(min_length = 1, max_length = 255, nullable = false, required = false)]
    pub thread: Option<String>,
    #[schema(max_items = 4, nullable = false, required = false)]
    pub actions: Option<Vec<PushAction>>,
    /// Strings only; not `from`, `message_type`, `notification`, `google*`, `gcm*`, `aps`, `belfry*`, nor the
    /// names of what arrives beside it: `link`, `image`, `actions`, `category`, `thread`.
    #[schema(nullable = false, required = false)]
    pub data: Option<BTreeMap<String, String>>,
    /// Wakes the app and shows nothing.
    #[schema(nullable = false, required = false)]
    pub silent: Option<bool>,
    #[schema(nullable = false, required = false)]
    pub urgency: Option<PushUrgency>,
    /// Merged over APNs' body (RFC 7396): `aps` and the app's own members; `push_type` sets the header.
    #[schema(value_type = Object, required = false)]
    pub apns: Option<()>,
    /// Merged over FCM's message: `notification`, `data`, `android`, `apns`, `webpush`, `fcm_options`.
    #[schema(value_type = Object, required = false)]
    pub fcm: Option<()>,
    /// Merged over what the service worker gets.
    #[schema(value_type = Object, required = false)]
    pub web_push: Option<()>,
}

#[derive(ToSchema)]
pub struct PushAction {
    #[schema(min_length = 1, max_length = 64)]
    pub id: String,
    #[schema(min_length = 1, max_length = 100)]
    pub title: String,
    #[schema(min_length = 1, max_length = 2048, nullable = false, required = false)]
    pub link: Option<String>,
    #[schema(min_length = 1, max_length = 2048, nullable = false, required = false)]
    pub icon: Option<String>,
}

/// Absent: high where something is shown, else normal. APNs: priority 10, 5, 1; FCM: high or normal; web push:
/// Urgency.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub enum PushUrgency {
    High,
    Normal,
    Low,
}
