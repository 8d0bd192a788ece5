"""What secrets look like: regular expressions, each with the kind that is shown in its place.

Every pattern is linear in the text: what repeats is bounded, or begins where no longer match
could have begun. A group ``secret`` is what goes where the rest of the match may stay.

The formats of vendors are those of detect-secrets, whose detectors are taken as lists of
patterns: running them through its scanner would read settings that all threads share. Left out
are its imprecise ones (a class name such as APConnectionPool is a password to it) and those
that can take quadratic time; their formats are written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from detect_secrets.plugins.aws import AWSKeyDetector
from detect_secrets.plugins.azure_storage_key import AzureStorageKeyDetector
from detect_secrets.plugins.base import RegexBasedDetector
from detect_secrets.plugins.discord import DiscordBotTokenDetector
from detect_secrets.plugins.github_token import GitHubTokenDetector
from detect_secrets.plugins.gitlab_token import GitLabTokenDetector
from detect_secrets.plugins.mailchimp import MailchimpDetector
from detect_secrets.plugins.pypi_token import PypiTokenDetector
from detect_secrets.plugins.sendgrid import SendGridDetector
from detect_secrets.plugins.slack import SlackDetector
from detect_secrets.plugins.square_oauth import SquareOAuthDetector
from detect_secrets.plugins.stripe import StripeDetector
from detect_secrets.plugins.telegram_token import TelegramBotTokenDetector

Pattern = tuple[str, re.Pattern[str]]

_DETECTORS: Final[tuple[tuple[str, type[RegexBasedDetector]], ...]] = (
    ("cloud-key", AzureStorageKeyDetector),
    ("token", DiscordBotTokenDetector),
    ("token", GitHubTokenDetector),
    ("token", GitLabTokenDetector),
    ("token", MailchimpDetector),
    ("token", PypiTokenDetector),
    ("token", SendGridDetector),
    ("token", SlackDetector),
    ("token", SquareOAuthDetector),
    ("token", StripeDetector),
    ("token", TelegramBotTokenDetector),
)

_BEGIN: Final = r"(?<![A-Za-z0-9])"
_OWN: Final = (
    ("api-key", r"kk_[A-Za-z0-9-]{1,64}_[A-Za-z0-9_-]{16,128}"),
    # header and payload of a JSON web token are base64 of '{"'; the signature may be cut off
    ("jwt", r"eyJ[A-Za-z0-9_-]{8,512}\.eyJ[A-Za-z0-9_-]{4,4096}(?:\.[A-Za-z0-9_-]{0,1024})?"),
    ("cloud-key", r"AIza[A-Za-z0-9_-]{35}"),  # Google
    ("cloud-key", r"ya29\.[A-Za-z0-9_-]{20,2048}"),
    ("cloud-key", r"GOCSPX-[A-Za-z0-9_-]{20,64}"),
    ("cloud-key", r"(?:AccountKey|SharedAccessKey)=[A-Za-z0-9+/]{40,100}={0,2}"),
    ("cloud-key", r"dop_v1_[a-f0-9]{64}"),  # DigitalOcean
    ("token", r"github_pat_[A-Za-z0-9_]{22,255}"),
    ("token", r"sk-(?:[a-z]{2,10}-)?(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{24,200}"),
    ("token", r"(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,255}"),
    ("token", r"whsec_[A-Za-z0-9+/=]{24,128}"),
    ("token", r"hf_[A-Za-z]{30,64}"),
    ("token", r"npm_[A-Za-z0-9]{36}"),
    ("token", r"hv[sb]\.[A-Za-z0-9_-]{24,255}"),  # Vault
    ("token", r"AKCp[A-Za-z0-9]{60,128}"),  # Artifactory
    ("token", r"dapi[a-f0-9]{32}"),  # Databricks
    ("token", r"xapp-[0-9]-[A-Za-z0-9-]{20,255}"),
    ("token", r"(?:AC|SK)[a-f0-9]{32}(?![A-Za-z0-9])"),  # Twilio
    ("token", r"AGE-SECRET-KEY-1[A-Z0-9]{58}"),
    ("token", r"shp(?:at|ca|pa|ss|ua)_[A-Fa-f0-9]{32,64}"),  # Shopify
    ("token", r"AT[AC]TT3[A-Za-z0-9_=-]{20,512}"),  # Atlassian
    ("token", r"dckr_[po]at_[A-Za-z0-9_-]{20,128}"),  # Docker
    ("token", r"glsa_[A-Za-z0-9]{20,64}(?:_[A-Fa-f0-9]{8})?"),  # Grafana
    ("api-key", r"gsk_[A-Za-z0-9]{32,128}"),  # Groq
    ("api-key", r"xai-[A-Za-z0-9]{32,128}"),
    ("token", r"sntry[su]_[A-Za-z0-9+/=_.-]{16,512}"),  # Sentry
    ("api-key", r"PMAK-[A-Fa-f0-9]{20,32}(?:-[A-Fa-f0-9]{20,64})?"),  # Postman
    ("api-key", r"rubygems_[a-f0-9]{32,64}"),
    ("token", r"figd_[A-Za-z0-9_-]{20,128}"),  # Figma
    ("api-key", r"lin_(?:api|oauth)_[A-Za-z0-9]{32,128}"),  # Linear
    ("token", r"r8_[A-Za-z0-9]{32,64}"),  # Replicate
    ("token", r"nfp_[A-Za-z0-9]{32,64}"),  # Netlify
)

_NOT_AUTHORITY: Final = r"""\s/?#\[\]"'<>|`"""
_IN_CONTEXT: Final = (
    # scheme://user:password@host; the password may hold @, and ends at the last one
    (
        "password",
        rf"(?<=://)[^{_NOT_AUTHORITY}:@]{{0,128}}:(?P<secret>[^{_NOT_AUTHORITY}]{{1,256}})@"
        r"(?=[A-Za-z0-9_\[$\{%.-])",
    ),
    ("token", r"(?i:\bauthorization)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:basic|token|apikey|digest)"
              r"\s{1,3}(?P<secret>[A-Za-z0-9._~+/=-]{6,2048})"),
    ("token", r"(?i:\bbearer)\s{1,3}(?P<secret>(?=[A-Za-z._~+/=-]{0,2048}[0-9])"
              r"[A-Za-z0-9._~+/=-]{16,4096})"),
    ("token", r"(?i:[?&;](?:sig|signature|access_token|x-amz-signature|x-amz-security-token))="
              r"(?P<secret>[A-Za-z0-9%+/=_.-]{16,2048})"),
    ("token", r"(?i:https://[a-z0-9.-]{0,80}webhook\.office\.com/)(?P<secret>\S{20,400})"),
)  # fmt: skip


def _patterns() -> Iterator[Pattern]:
    # its second pattern takes the name of the variable along; keywords find that secret
    yield "cloud-key", AWSKeyDetector.denylist[0]
    for kind, detector in _DETECTORS:
        for pattern in detector.denylist:  # type: ignore[attr-defined]
            yield kind, pattern
    for kind, written in _OWN:
        yield kind, re.compile(_BEGIN + written)
    for kind, written in _IN_CONTEXT:
        yield kind, re.compile(written)


PATTERNS: Final[tuple[Pattern, ...]] = tuple(_patterns())

MAY_HOLD_SECRET: Final = re.compile(
    r"kk_|eyJ|AIza|ya29|GOCSPX|[Kk]ey=|dop_v1|github_pat|sk-|[srp]k_|whsec|hf_|npm_|hv[sb]\.|AKCp"
    r"|dapi|xapp-|xox|AGE-S|A3T|A[BKS]IA|ACCA|gh[pousr]_|gl[a-z]{2,6}-|GR134|pypi-|SG\.|sq0|-us\d"
    r"|(?:AC|SK)[a-z0-9]{8}|[MNO][\w-]{23}|\d{8}:|://|[?&;][sSaAxX]"
    r"|shp[a-z]{2}_|AT[AC]TT3|dckr_|glsa_|gsk_|xai-|sntry|PMAK-|rubygems_|figd_|lin_[ao]|r8_|nfp_"
    r"|(?i:bearer|authorization|aws|hooks\.slack)"
)
"""A text without one of these matches none of `PATTERNS`."""
