"""What tests share."""
import os

os.environ.setdefault("SCIPY_ARRAY_API", "1")  # before scipy is imported; scikit-learn skips checks without it

import pytest  # noqa: E402
from small_models import MODELS, X, y_of  # noqa: E402


@pytest.fixture(params=MODELS)
def model(request):
    """Each of the small models, not fitted."""
    return MODELS[request.param]()


@pytest.fixture
def fitted(model):
    """Each of the small models, fitted."""
    return model.partial_fit(X, y_of(model))
